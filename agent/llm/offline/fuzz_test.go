package offline_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/offline"
)

var cited = regexp.MustCompile(`(?m)^(?:\d+\. )?((?:> .*\n)+)\n *— (.+):(\d+)$`)

// Whatever the tools say, nothing panics, and each citation stood in a result, with a line that holds the beginning of the quote.
func FuzzResults(f *testing.F) {
	f.Add("primes", "a.md:3: primes are numbers\nb: c.md:12: x", "    3\tPrimes are **numbers** above one.\n    4\tmore\n{\"path\":\"a.md\",\"revision\":\"r\"}")
	f.Add("quiz me on primes", "a.md:3: primes", "    1\t---\n    2\tx\n    3\t---\n    4\tA prime is a number with two divisors.\n{\"path\":\"q.md\"}")
	f.Add("考考我素数", "a.md:3: 素数", "    1\t# 素数\n    2\t素数只有两个因数,**一**不是素数。\n    3\t- 素数有无穷多个。\n[Lines 1-3 of 9 shown. Continue with offset 4.]")
	f.Add("x", `No matches for "a:1: b" in the space.`, "(the file is empty)\n{\"path\":\"\"}")
	f.Add("x y", "x:1:\nx:0: y\n:3: z\nx:99999999999999999999: y", "    1\t```\n    2\tx\n    3\t\n    4\t| x |\n    5\t> x\n    6\tx\n    7\t===\n    9\tx")
	f.Add("b prim", "000:01: b", "01\tb")
	f.Add("the", "a:1: the", "1\tthe \xff\xfe. \xf0 The\r\n    2\t"+strings.Repeat("the dog. The cat. ", 90))
	f.Add("quiz me on everything", "a:1: ____", "    1\t_A_ **b** __c__ is a sentence that goes on. It **_*x*_** and __ ends ** here.")
	f.Fuzz(func(t *testing.T, question, found, shown string) {
		validFound, validShown := strings.ToValidUTF8(found, "\ufffd"), strings.ToValidUTF8(shown, "\ufffd")
		for _, withRead := range []bool{true, false} {
			messages := []llm.Message{user(question), calls(), results(found)}
			if withRead {
				messages = append(messages, llm.Message{Role: llm.RoleToolResult, ToolCallID: "offline-2", ToolName: "read", Content: user(shown).Content})
			}
			m, err := offline.New().Stream(t.Context(), &llm.Request{Messages: messages, Tools: []llm.ToolSpec{{Name: "search"}}}, nil)
			if err != nil || m.StopReason != llm.StopEnd && m.StopReason != llm.StopToolUse {
				t.Fatalf("%s, %v", m.StopReason, err)
			}
			if !utf8.ValidString(m.Text()) {
				t.Fatalf("the answer is no text: %q", m.Text())
			}
			for _, c := range cited.FindAllStringSubmatch(m.Text(), -1) {
				line, ok := reported(validFound, validShown, c[2], c[3], withRead)
				if !ok {
					t.Fatalf("%s:%s was not reported", c[2], c[3])
				}
				quote, _, _ := strings.Cut(strings.TrimPrefix(c[1], "> "), "\n")
				if begin, _, _ := strings.Cut(quote, "____"); !strings.Contains(line, firstWord(begin)) && !endsInto(line, begin) {
					t.Fatalf("%s:%s is %q and does not hold %q", c[2], c[3], line, firstWord(begin))
				}
			}
		}
	})
}

// reported is the line that a result showed for a place; several, if it showed the place several times.
func reported(found, shown, path, number string, read bool) (line string, ok bool) {
	if !read {
		for l := range strings.SplitSeq(found, "\n") {
			if text, is := strings.CutPrefix(l, path+":"+number+":"); is {
				line, ok = line+"\n"+text, true
			}
		}
		return line, ok
	}
	if path != "p.md" && !strings.Contains(shown, fmt.Sprintf(`{"path":%q`, path)) && !strings.Contains(shown, `\`) {
		return "", false
	}
	n, _ := strconv.Atoi(number)
	for l := range strings.SplitSeq(shown, "\n") {
		digits, text, is := strings.Cut(l, "\t")
		if got, err := strconv.Atoi(strings.TrimLeft(digits, " ")); is && err == nil && got == n {
			line, ok = line+"\n"+text, true
		}
	}
	return line, ok
}

// endsInto reports that the quotation begins with the end of the line and goes on with the next one.
func endsInto(line, quote string) bool {
	line = strings.TrimRight(line, " \t\r")
	for i := range line {
		if strings.HasPrefix(quote, line[i:]) {
			return true
		}
	}
	return false
}

// firstWord is what stands before the first space or mark of emphasis, which a blank may have replaced.
func firstWord(s string) string {
	if i := strings.IndexAny(s, " *_…"); i >= 0 {
		s = s[:i]
	}
	return s
}

// Any message makes a request that the search tool accepts, or an answer.
func FuzzQuestion(f *testing.F) {
	for _, q := range []string{"", "Why?", "quiz me", "practise practise", "turn into", "turn x into", "give me a", "考考我", "出题", "给我出三道题", "练习", "的", "\xff", "can you", "let me", "let's", "a. b! ,", "Attached text:\n", "::::", "test me on my own notes"} {
		f.Add(q, q)
	}
	f.Fuzz(func(t *testing.T, before, question string) {
		m, err := offline.New().Stream(t.Context(), &llm.Request{
			Messages: []llm.Message{user(before), {Role: llm.RoleAssistant}, user(question)}, Tools: []llm.ToolSpec{{Name: "search"}},
		}, nil)
		if err != nil || (m.StopReason == llm.StopToolUse) != (len(m.ToolCalls()) > 0) {
			t.Fatalf("%s, %v", m.StopReason, err)
		}
		for _, c := range m.ToolCalls() {
			if !strings.Contains(string(c.Arguments), `"query":"`) || strings.Contains(string(c.Arguments), `"query":""`) {
				t.Errorf("arguments %s", c.Arguments)
			}
		}
	})
}
