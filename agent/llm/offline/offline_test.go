package offline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/offline"
	"github.com/repa-app/repa/agent/tool"
)

func library() *folder {
	return &folder{files: map[string]string{
		"bio/cells.md": `---
title: mitochondria
---

# Cells

A cell is bounded by a membrane. The **mitochondria** turn sugar
into ATP, which every other part of
the cell uses as fuel.

## Mitochondria in detail

- They have two membranes.
- Mitochondria carry DNA of their own,
  which is inherited from the mother.
- [ ] draw the mitochondria

| part | task |
|------|------|
| mitochondria | make ATP |

` + "```\nmitochondria := 2\n```\n",
		"生物/细胞.md": "# 细胞\n\n细胞由细胞膜包着，里面有许多细胞器。\n**线粒体**把糖变成能量，\n供细胞的其他部分使用。\n\n" +
			"## 线粒体\n\n线粒体有两层膜，内层向里折叠。植物细胞还有叶绿体，叶绿体用光制造糖。\n线粒体有自己的遗传物质，来自母亲。叶绿体也有自己的遗传物质。\n",
	}}
}

func all(f *folder) tool.Services { return tool.Services{Reader: f, Searcher: f} }

func TestTranscripts(t *testing.T) {
	readOnly := func(f *folder) tool.Services { return tool.Services{Reader: f} }
	searchOnly := func(f *folder) tool.Services { return tool.Services{Searcher: f} }
	for _, c := range []struct {
		name      string
		questions []string
		change    func(*folder)
		services  func(*folder) tool.Services
		steer     string
	}{
		{name: "english", questions: []string{"What do mitochondria do in a cell?"}},
		{name: "chinese", questions: []string{"线粒体 有什么用？"}},
		{name: "nothing", questions: []string{"How is bread baked?", "怎样烤 面包？"}},
		{name: "partly", questions: []string{"How does photosynthesis feed the mother plants?"}},
		{name: "quiz-english", questions: []string{"Quiz me about mitochondria, please."}},
		{name: "quiz-chinese", questions: []string{"考考我：线粒体"}},
		{name: "quiz-whole", questions: []string{"quiz me on everything"}},
		{name: "search-error", questions: []string{"mitochondria?", "线粒体？"}, change: func(f *folder) { f.searchErr = errors.New("the folder cannot be read: input/output error") }},
		{name: "read-error", questions: []string{"mitochondria?"}, change: func(f *folder) { f.readErr = errors.New("permission denied") }},
		{name: "no-search", questions: []string{"mitochondria?", "线粒体？"}, services: readOnly},
		{name: "no-read", questions: []string{"mitochondria?"}, services: searchOnly},
		{name: "follow-up", questions: []string{"Which membranes are there?", "Why?", "Tell me more about it", "Quiz me on it"}},
		{name: "steer", questions: []string{"What is a membrane?"}, steer: "and mitochondria"},
		{name: "attachment", questions: []string{"Which word here is in my notes?\n\nAttached text (stdin):\nThe membrane of an onion.", "membrane?\n\n附加文本(标准输入):\n面包"}},
		{name: "no-words", questions: []string{"?", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := library()
			if c.change != nil {
				c.change(f)
			}
			services := all
			if c.services != nil {
				services = c.services
			}
			s := newSession(t, services(f))
			s.steer = c.steer
			for _, q := range c.questions {
				answer := s.ask(q)
				if !strings.Contains(answer, "not a language model") && !strings.Contains(answer, "不是语言模型") || !strings.Contains(answer, "ollama/NAME") {
					t.Errorf("the answer does not say who answers: %s", answer)
				}
			}
			golden(t, c.name, s.transcript())
		})
	}
}

// atLast is a session before its last step.
func atLast(t *testing.T, question string) *llm.Request {
	t.Helper()
	s := newSession(t, all(library()))
	s.ask(question)
	s.messages = s.messages[:len(s.messages)-1]
	return s.request()
}

func TestStream(t *testing.T) {
	for _, req := range []*llm.Request{
		atLast(t, "What do mitochondria do?"), atLast(t, "线粒体 有什么用？"),
		{Model: "offline", Messages: []llm.Message{user("mitochondria")}, Tools: []llm.ToolSpec{{Name: "search"}}},
	} {
		var events []llm.Event
		m, err := offline.New().Stream(t.Context(), req, func(e llm.Event) { events = append(events, e) })
		if err != nil {
			t.Fatal(err)
		}
		if m.API != offline.API || m.Provider != "builtin" || m.Model != "offline" || *m.Usage != (llm.Usage{}) {
			t.Errorf("message %+v", m)
		}
		if events[0].Type != llm.EventStart {
			t.Errorf("begins with %+v", events[0])
		}
		var text strings.Builder
		var done []llm.Block
		for _, e := range events[1:] {
			switch {
			case e.Index != len(done):
				t.Fatalf("index %d after %d blocks", e.Index, len(done))
			case e.Type == llm.EventDelta:
				if n := len(strings.Fields(e.Text)); e.Block == llm.BlockText && n > 8 {
					t.Errorf("one piece has %d words: %q", n, e.Text)
				}
				text.WriteString(e.Text)
			case e.Type == llm.EventBlock:
				if want := e.Done.Text + string(e.Done.Arguments); text.String() != want {
					t.Errorf("deltas %q, block %q", text.String(), want)
				}
				done = append(done, *e.Done)
				text.Reset()
			default:
				t.Errorf("event %+v", e)
			}
		}
		if diff := cmp.Diff(m.Content, done); diff != "" {
			t.Error(diff)
		}
	}
}

// A call that is stopped at any event emits nothing more and keeps what was said.
func TestAbort(t *testing.T) {
	requests := []*llm.Request{
		atLast(t, "What do mitochondria do?"),
		{Messages: []llm.Message{user("quiz me on everything")}, Tools: []llm.ToolSpec{{Name: "search"}}},
	}
	for i, req := range requests {
		total := 0
		if _, err := offline.New().Stream(t.Context(), req, func(llm.Event) { total++ }); err != nil {
			t.Fatal(err)
		}
		for stop := 0; stop < total; stop++ {
			ctx, cancel := context.WithCancel(t.Context())
			if stop == 0 {
				cancel()
			}
			seen, said := 0, ""
			m, err := offline.New().Stream(ctx, req, func(e llm.Event) {
				if seen++; seen == stop {
					cancel()
				}
				if e.Type == llm.EventDelta && e.Block == llm.BlockText {
					said += e.Text
				}
			})
			cancel()
			var failure *llm.Error
			if !errors.As(err, &failure) || failure.Kind != llm.KindAborted || !errors.Is(err, context.Canceled) {
				t.Fatalf("request %d, stopped at event %d: error %v", i, stop, err)
			}
			if m.StopReason != llm.StopAborted || m.ErrorMessage != err.Error() || seen != stop || m.Text() != said {
				t.Fatalf("request %d, stopped at event %d: %d events, %s, said %q, kept %q", i, stop, seen, m.StopReason, said, m.Text())
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		m, err := offline.New().Stream(ctx, req, func(llm.Event) {
			if seen++; seen == total {
				cancel()
			}
		})
		cancel()
		if err != nil || m.StopReason == llm.StopAborted {
			t.Errorf("stopped when all was said: %s, %v", m.StopReason, err)
		}
	}
}

func TestSameRequestSameAnswer(t *testing.T) {
	req := atLast(t, "Quiz me about mitochondria")
	want, err := offline.New().Stream(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := offline.New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := p.Stream(t.Context(), req, nil)
			if err != nil || !cmp.Equal(got.Content, want.Content) {
				t.Errorf("%v, %s", err, cmp.Diff(want.Content, got.Content))
			}
		})
	}
	all.Wait()
}

// Ids stay unique in a history, also beside calls of other models and after older messages were left out.
func TestIDs(t *testing.T) {
	s := newSession(t, all(library()))
	s.messages = []llm.Message{user("before"), {Role: llm.RoleAssistant, Content: []llm.Block{
		{Type: llm.BlockToolCall, ID: "offline-41", Name: "search"}, {Type: llm.BlockToolCall, ID: "offline-x", Name: "read"}, {Type: llm.BlockToolCall, ID: "call_99"},
	}}, {Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: "done"}}}}
	s.ask("mitochondria")
	seen := map[string]bool{}
	for _, m := range s.messages[3:] {
		for _, c := range m.ToolCalls() {
			if seen[c.ID] || !strings.HasPrefix(c.ID, "offline-4") {
				t.Errorf("id %s", c.ID)
			}
			seen[c.ID] = true
		}
	}
	if !seen["offline-42"] {
		t.Errorf("ids %v", seen)
	}
}

// first is the query of the first search for a history that ends with a question.
func first(t *testing.T, messages ...llm.Message) string {
	t.Helper()
	m, err := offline.New().Stream(t.Context(), &llm.Request{Messages: messages, Tools: []llm.ToolSpec{{Name: "search"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := m.ToolCalls()
	if len(calls) == 0 {
		return ""
	}
	return string(calls[0].Arguments)
}

func TestQuery(t *testing.T) {
	said := llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: "said"}}}
	calling := llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockToolCall, ID: "offline-1", Name: "search"}}}
	broken := llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopAborted, Content: calling.Content}
	yes := true
	stopped := llm.Message{Role: llm.RoleToolResult, ToolCallID: "offline-1", ToolName: "search", IsError: &yes, Content: user("Operation aborted").Content}
	found := llm.Message{Role: llm.RoleToolResult, ToolCallID: "offline-1", ToolName: "search", Content: user("a.md:1: x").Content}
	summary := user("The earlier part was:\n\n<summary>\nprimes\n</summary>")
	for _, c := range []struct {
		name, want string
		messages   []llm.Message
	}{
		{"a question", "What are primes?", []llm.Message{user("What are primes?")}},
		{"an older question was answered", "What are cubes?", []llm.Message{user("What are primes?"), said, user("What are cubes?")}},
		{"two messages at once", "What are primes? And cubes?", []llm.Message{user("What are primes?"), user("And cubes?")}},
		{"steering", "What are primes? And cubes?", []llm.Message{user("What are primes?"), calling, found, user("And cubes?")}},
		{"after a stop", "And cubes?", []llm.Message{user("What are primes?"), calling, stopped, user("And cubes?")}},
		{"after a broken answer", "And cubes?", []llm.Message{user("What are primes?"), broken, user("And cubes?")}},
		{"no words of its own", "What are primes? Why?", []llm.Message{user("What are primes?"), said, user("Why?")}},
		{"no words twice", "What are primes? Tell me more", []llm.Message{user("What are primes?"), said, user("Why?"), said, user("Tell me more")}},
		{"points back", "What are primes? Does it matter?", []llm.Message{user("What are primes?"), said, user("Does it matter?")}},
		{"points back, yet names its subject", "Does that mean squares are cubes?", []llm.Message{user("What are primes?"), said, user("Does that mean squares are cubes?")}},
		{"Chinese", "什么是素数？ 为什么？", []llm.Message{user("什么是素数？"), said, user("为什么？")}},
		{"Chinese, more", "什么是素数？ 再详细一点", []llm.Message{user("什么是素数？"), said, user("再详细一点")}},
		{"nothing before", "Why?", []llm.Message{user("Why?")}},
		{"a summary is no question", "Why?", []llm.Message{summary, user("Why?")}},
		{"a question about tags", "What does <summary> do in HTML?", []llm.Message{user("What does <summary> do in HTML?")}},
		{"selected", "What are primes?", []llm.Message{user("What are primes?\n\nSelected text from a.md:\n\nCubes.")}},
		{"attached", "What are primes?", []llm.Message{user("What are primes?\n\nAttached text (stdin):\nCubes.")}},
		{"only the attachment has words", "Cubes are solid.", []llm.Message{user("What is this?\n\nAttached text (stdin):\nCubes are solid.")}},
		{"only an attachment", "Cubes are solid.", []llm.Message{user("Attached text (stdin):\nCubes are solid.")}},
		{"a quiz of what came before", "What are primes?", []llm.Message{user("What are primes?"), said, user("Quiz me")}},
		{"a quiz of everything", "the", []llm.Message{user("What are primes?"), said, user("Quiz me on all my notes")}},
		{"a Chinese quiz of everything", "的", []llm.Message{user("考考我所有笔记")}},
		{"long", strings.Repeat("ab ", 133) + "a", []llm.Message{user(strings.Repeat("ab ", 500))}},
	} {
		want, err := json.Marshal(map[string]any{"limit": 40, "query": c.want})
		if err != nil {
			t.Fatal(err)
		}
		if got := first(t, c.messages...); got != string(want) {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}

func TestQuizWish(t *testing.T) {
	const no = "-"
	for _, c := range []struct{ text, topic string }{
		{"Quiz me on spacing", "spacing"},
		{"quiz: the Krebs cycle", "Krebs cycle"},
		{"Please quiz me about spacing!", "spacing"},
		{"Can you quiz me on spacing?", "spacing"},
		{"I'd like to practise irregular verbs", "irregular verbs"},
		{"Practice Spanish verbs", "Spanish verbs"},
		{"practise: verbs", "verbs"},
		{"Test me on chapter 3", "chapter 3"},
		{"test my knowledge of cells", "cells"},
		{"Give me five practice questions about cells", "cells"},
		{"Ask me some questions about cells.", "cells"},
		{"Make a cloze test from cells.md", "cells.md"},
		{"Let's do a quick quiz on cells", "cells"},
		{"Turn cells.md into cloze questions", "cells.md"},
		{"cloze cells", "cells"},
		{"I read the chapter on cells. Now quiz me.", "I read the chapter on cells."},
		{"Why does retrieval practice help?", no},
		{"What is a cloze test?", no},
		{"How should I practise scales?", no},
		{"Can practice replace talent?", no},
		{"Does it help to quiz myself?", no},
		{"Practice makes perfect, is that right?", no},
		{"Practice testing?", no},
		{"Make me a plan for practice", no},
		{"Write about practice tests", no},
		{"Explain the testing effect", no},
		{"Which questions did I practise?", no},
		{"Test", no},
		{"I want to know what a quiz is", no},
		{"考考我间隔复习", "间隔复习"},
		{"请你考考我：间隔复习", "间隔复习"},
		{"能不能考考我细胞？", "细胞"},
		{"出题：细胞", "细胞"},
		{"给我出三道关于细胞的填空题", "细胞"},
		{"可以给我出几道细胞的练习题吗？", "细胞"},
		{"练习细胞", "细胞"},
		{"我想练习细胞分裂", "细胞分裂"},
		{"自测 细胞", "细胞"},
		{"细胞测验", "细胞"},
		{"关于细胞的填空题", "细胞"},
		{"为什么练习测试有用？", no},
		{"提取练习有用吗？", no},
		{"提取练习", no},
		{"练习的作用是什么？", no},
		{"练习和记忆的关系", no},
		{"怎么出题才好？", no},
		{"什么是自测？", no},
		{"如何练习听力", no},
		{"测验能帮助记忆吗？", no},
	} {
		m, err := offline.New().Stream(t.Context(), &llm.Request{Messages: []llm.Message{
			user(c.text), calls(), results(`a.md:1: A membrane bounds the cell and **holds** it together.`),
		}, Tools: []llm.ToolSpec{{Name: "search"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		isQuiz := strings.Contains(m.Text(), "____") || strings.Contains(m.Text(), "good question") || strings.Contains(m.Text(), "适合出题")
		if isQuiz != (c.topic != no) {
			t.Errorf("%q is a quiz: %v", c.text, isQuiz)
		}
		if c.topic != no {
			if got, want := first(t, user(c.text)), fmt.Sprintf(`{"limit":40,"query":%q}`, c.topic); got != want {
				t.Errorf("%q searches %s, want %s", c.text, got, want)
			}
		}
	}
}

func calls() llm.Message {
	return llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopToolUse, Content: []llm.Block{
		{Type: llm.BlockToolCall, ID: "offline-1", Name: "search"}, {Type: llm.BlockToolCall, ID: "offline-2", Name: "read", Arguments: []byte(`{"path":"p.md"}`)},
	}}
}

func results(search string) llm.Message {
	return llm.Message{Role: llm.RoleToolResult, ToolCallID: "offline-1", ToolName: "search", Content: user(search).Content}
}

// Of a long passage the sentences about the question are quoted, with the line on which they begin.
func TestLongPassages(t *testing.T) {
	filler := strings.Repeat("Nothing of note stands in this sentence here. ", 12)
	for _, c := range []struct{ name, text, begins, place string }{
		{"a paragraph", filler + "\nMore of it. A zebra\nhas stripes. " + filler, "> A zebra has stripes. Nothing", "long.md:2"},
		{"at the end", filler + "\n" + filler + "\nThe zebra ends it.", "> The zebra ends it.\n", "long.md:3"},
		{"data without full stops", strings.Repeat("a,b,c,d,e,f\n", 100) + "zebra,1,2\n" + strings.Repeat("a,b,c,d,e,f\n", 50), "> zebra,1,2 a,b,c", "long.md:101"},
		{"one endless line", "zebra " + strings.Repeat("word ", 500), "> zebra word word", "long.md:1"},
		{"a Chinese paragraph", strings.Repeat("这句话与问题无关。", 60) + "\n斑马zebra有条纹。", "> 斑马zebra有条纹。", "long.md:2"},
		{"abbreviations", filler + filler + "See e.g. the zebra by Dr. Brown. " + filler, "> See e.g. the zebra by Dr. Brown. Nothing", "long.md:1"},
		{"a code block", "```\nx\nzebra := 1\n  y\n```", "> x\n> zebra := 1\n>   y\n", "long.md:2"},
		{"a heading by underline", "The zebra\n=========\n\nIt has stripes.", "> It has stripes.", "long.md:4"},
		{"a quotation", "> The zebra\n> has stripes.\nNot quoted.", "> The zebra has stripes.\n", "long.md:1"},
		{"a number list", "1. one\n2) the zebra\n   has stripes\n3. three", "> the zebra has stripes\n", "long.md:2"},
		{"CRLF", "x\r\n\r\nThe zebra\r\nhas stripes.\r\n", "> The zebra has stripes.\n", "long.md:3"},
	} {
		s := newSession(t, all(&folder{files: map[string]string{"long.md": c.text}}))
		answer := s.ask("zebra")
		_, quoted, _ := strings.Cut(answer, "\n\n")
		if !strings.HasPrefix(quoted, c.begins) || !strings.Contains(quoted, "\n\n— "+c.place+"\n") {
			t.Errorf("%s: %s", c.name, answer)
		}
		if first, _, _ := strings.Cut(quoted, "\n\n—"); utf8.RuneCountInString(first) > 490 {
			t.Errorf("%s: a quotation of %d characters", c.name, utf8.RuneCountInString(first))
		}
	}
}

// A request with all that three reads can show, and a message of megabytes, is answered without delay that grows with it.
func BenchmarkStream(b *testing.B) {
	page := ""
	for i := range 900 {
		page += fmt.Sprintf("%5d\tPrimes are numbers. 素数只有两个因数。\n", i+1)
	}
	messages := []llm.Message{user("What are primes? 素数？" + strings.Repeat(" and 什么是合数", 100_000)), calls(), results("a.md:1: primes")}
	for range 3 {
		messages = append(messages, llm.Message{Role: llm.RoleToolResult, ToolCallID: "offline-2", ToolName: "read", Content: user(page).Content})
	}
	for b.Loop() {
		if _, err := offline.New().Stream(b.Context(), &llm.Request{Messages: messages, Tools: []llm.ToolSpec{{Name: "search"}}}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
