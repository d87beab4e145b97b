package example_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/offline"
	"github.com/repa-app/repa/agent/tool"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/example"
	"github.com/repa-app/repa/space"
	"github.com/repa-app/repa/space/content"
)

// learner asks in an unpacked sample space, through the real tools and the real loop.
type learner struct {
	t       *testing.T
	dir     string
	tools   []tool.Tool
	history []llm.Message
	steer   []string
}

func newLearner(t *testing.T) *learner {
	t.Helper()
	state := t.TempDir()
	fsys, err := vfs.OS(state)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	if err := example.Unpack(fsys); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(state, example.Folder)
	s, err := space.Open(t.Context(), dir, space.Options{NewID: uuid.NewString})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	set := tool.NewSet(tool.Services{Reader: reader{s}, Searcher: searcher{s}})
	return &learner{t: t, dir: dir, tools: set.Tools()}
}

type reader struct{ space *space.Space }

func (r reader) Read(ctx context.Context, path string) (tool.Document, error) {
	d, err := r.space.Content().ReadText(ctx, content.At(path))
	return tool.Document{ID: d.ID, Path: d.Path, Text: d.Text, Encoding: d.Encoding, Revision: d.Revision, Size: d.Size}, err
}

type searcher struct{ space *space.Space }

func (s searcher) Search(ctx context.Context, query string, limit int) ([]tool.Match, bool, error) {
	r, err := s.space.Search(ctx, query, limit)
	var out []tool.Match
	for _, m := range r.Matches {
		out = append(out, tool.Match{Path: m.Path, Line: m.Line, Text: m.Text})
	}
	return out, r.More, err
}

// Append implements agent.Recorder.
func (l *learner) Append(_ context.Context, records []agent.Record) (ids []string, err error) {
	for _, r := range records {
		l.history = append(l.history, r.Message)
		ids = append(ids, strconv.Itoa(len(l.history)))
	}
	return ids, nil
}

// ask runs one request of the session and returns the answer.
func (l *learner) ask(question string) string {
	l.t.Helper()
	r := agent.Run(l.t.Context(), agent.Config{
		Provider: offline.New(), Model: "offline", Recorder: l, Tools: l.tools, History: l.history,
		Prompt: []agent.Incoming{{Message: said(question)}}, Inbox: l,
	})
	if r.Status != agent.Completed || r.Usage != (llm.Usage{}) {
		l.t.Fatalf("%q ended %s with %v, usage %+v", question, r.Status, r.Err, r.Usage)
	}
	return l.history[len(l.history)-1].Text()
}

// citation is a quotation with its place.
type citation struct {
	quote, path string
	line        int
}

var cited = regexp.MustCompile(`(?m)^(?:\d+\. )?((?:> .*\n)+)\n *— (.+):(\d+)$`)

// citations returns the quotations of an answer, each checked against the file.
func (l *learner) citations(answer string) (out []citation) {
	l.t.Helper()
	for _, m := range cited.FindAllStringSubmatch(answer, -1) {
		line, _ := strconv.Atoi(m[3])
		c := citation{strings.TrimPrefix(strings.TrimSpace(m[1]), "> "), m[2], line}
		data, err := os.ReadFile(filepath.Join(l.dir, filepath.FromSlash(c.path)))
		if err != nil {
			l.t.Error(err)
			continue
		}
		lines := strings.Split(string(data), "\n")
		if line < 1 || line > len(lines) || !strings.Contains(lines[line-1], firstWords(c.quote)) {
			l.t.Errorf("%s:%d does not hold %q", c.path, line, firstWords(c.quote))
		}
		out = append(out, c)
	}
	return out
}

// firstWords are the first eight characters or so, up to the first blank.
func firstWords(quote string) string {
	quote, _, _ = strings.Cut(quote, "____")
	r := []rune(quote)
	return strings.TrimSpace(string(r[:min(len(r), 8)]))
}

func TestQuestionsOfLearners(t *testing.T) {
	for _, c := range []struct{ question, path string }{
		{"Why does spacing practice help?", "memory/spacing.md"},
		{"Is it bad to study everything the night before the exam?", "memory/spacing.md"},
		{"How many days should I leave before I look at something again?", "memory/spacing.md"},
		{"Should I mix different kinds of exercises?", "practice/interleaving.md"},
		{"Who first measured how fast we forget things?", "memory/forgetting.md"},
		{"Does it help to mark the text with a yellow pen?", "practice/retrieval.md"},
		{"What was found when students tested themselves instead of rereading?", "practice/retrieval.md"},
		{"How many Chinese characters do I already know?", "goal.md"},
		{"隔几天再复习有什么好处？", "记忆/间隔复习.md"},
		{"考试前一天晚上临时抱佛脚行不行？", "记忆/间隔复习.md"},
		{"什么样的目标才算好？", "学习/目标与反馈.md"},
		{"做错了会不会记住错误的答案？", "记忆/提取练习.md"},
		{"只看分数为什么不知道怎么改进？", "学习/目标与反馈.md"},
		{"反复读书觉得都懂了，怎么知道是不是真的会？", "记忆/提取练习.md"},
	} {
		t.Run(c.question, func(t *testing.T) {
			l := newLearner(t)
			answer := l.ask(c.question)
			got := l.citations(answer)
			if len(got) == 0 || got[0].path != c.path && (len(got) < 2 || got[1].path != c.path) {
				t.Errorf("quoted %+v", got)
			}
		})
	}
}

// A relative of the topic's word ("space") does not take the place of the topic.
func TestQuizKeepsToTheWord(t *testing.T) {
	l := newLearner(t)
	for _, c := range l.citations(l.ask("Quiz me on spacing")) {
		if c.path != "memory/spacing.md" {
			t.Errorf("%q is from %s", c.quote, c.path)
		}
	}
}

func TestSpacingFirst(t *testing.T) {
	l := newLearner(t)
	got := l.citations(l.ask("Why does spacing practice help?"))
	if len(got) == 0 || got[0].path != "memory/spacing.md" || !strings.Contains(got[0].quote, "That effort is what strengthens the memory.") {
		t.Errorf("quoted %+v", got)
	}
}

// A file that was written a moment ago is found, and its only answer is quoted from exactly its line.
func TestFreshFile(t *testing.T) {
	for _, c := range []struct{ file, text, question, quote, place string }{
		{"trips/lisbon.md", "# Lisbon\n\nBooked in May.\n\nThe funicular to the castle costs\nfour euros and runs until midnight.\n", "What does the funicular cost?",
			"The funicular to the castle costs four euros and runs until midnight.", "trips/lisbon.md:5"},
		{"化学/催化剂.md", "# 催化剂\n\n- 加快反应\n- 二氧化锰能让双氧水很快放出氧气，自身质量不变。\n", "双氧水里加什么会很快冒出氧气？",
			"二氧化锰能让双氧水很快放出氧气，自身质量不变。", "化学/催化剂.md:4"},
	} {
		l := newLearner(t)
		l.ask("Why does spacing practice help?")
		l.write(c.file, c.text)
		answer := l.ask(c.question)
		got := l.citations(answer)
		if len(got) == 0 || got[0].quote != c.quote || got[0].path+":"+strconv.Itoa(got[0].line) != c.place {
			t.Errorf("%s quoted %+v\n%s", c.question, got, answer)
		}
	}
}

func (l *learner) write(name, text string) {
	l.t.Helper()
	file := filepath.Join(l.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		l.t.Fatal(err)
	}
}

func TestQuizzes(t *testing.T) {
	for _, c := range []struct{ wish, path, answers string }{
		{"Quiz me on spacing", "memory/spacing.md", "Answers:"},
		{"Give me some practice questions about interleaving", "practice/interleaving.md", "Answers:"},
		{"考考我间隔复习", "记忆/间隔复习.md", "答案："},
		{"给我出三道关于反馈的填空题", "学习/目标与反馈.md", "答案："},
		{"quiz me on everything", "", "Answers:"},
		{"用整个文件夹考考我", "", "答案："},
	} {
		t.Run(c.wish, func(t *testing.T) {
			l := newLearner(t)
			answer := l.ask(c.wish)
			got := l.citations(answer)
			questions, answers, _ := strings.Cut(answer, c.answers)
			keys := numbered.FindAllStringSubmatch(answers, -1)
			if len(got) < 3 || len(got) > 5 || len(keys) != len(got) {
				t.Fatalf("%d questions, %d answers in %s", len(got), len(keys), answer)
			}
			about := 0
			for i, q := range got {
				if !strings.Contains(q.quote, "____") || strings.HasPrefix(q.quote, "这叫做") {
					t.Errorf("%q has no blank, or cannot be understood alone", q.quote)
				}
				if !l.holds(q, keys[i][1]) {
					t.Errorf("%q is not what %s:%d leaves blank in %q", keys[i][1], q.path, q.line, q.quote)
				}
				if q.path == c.path {
					about++
				}
			}
			if c.path != "" && 2*about <= len(got) {
				t.Errorf("%d of %d questions are from %s:\n%s", about, len(got), c.path, questions)
			}
		})
	}
}

var numbered = regexp.MustCompile(`(?m)^\d+\. (.+)$`)

// holds reports that the quotation with the key in its blanks stands at its place, line breaks and emphasis aside.
func (l *learner) holds(c citation, key string) bool {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, filepath.FromSlash(c.path)))
	if err != nil {
		l.t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")[c.line-1:]
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer(" ", "", "\n", "", "*", "").Replace(s))
	}
	return strings.Contains(plain(strings.Join(lines, "\n")), plain(strings.ReplaceAll(c.quote, "____", key)))
}

// A steering message while the search runs is answered together with the question.
func TestSteering(t *testing.T) {
	l := newLearner(t)
	l.steer = []string{"I mean with a yellow marker pen, highlighting"}
	got := l.citations(l.ask("Does it help to mark a text?"))
	if len(got) == 0 || got[0].path != "practice/retrieval.md" || !strings.Contains(got[0].quote, "yellow") {
		t.Errorf("quoted %+v", got)
	}
}

// Steering implements agent.Inbox: it gives what was typed once the model has begun.
func (l *learner) Steering(context.Context) (in []agent.Incoming) {
	if n := len(l.history); n == 0 || l.history[n-1].Role != llm.RoleToolResult {
		return nil
	}
	for _, text := range l.steer {
		in = append(in, agent.Incoming{Message: said(text)})
	}
	l.steer = nil
	return in
}

// FollowUps implements agent.Inbox.
func (l *learner) FollowUps(context.Context) []agent.Incoming { return nil }

func said(text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}
