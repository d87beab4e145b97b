package offline

import (
	"strings"
	"unicode/utf8"

	"github.com/repa-app/repa/agent/llm"
)

const (
	// maxQuery bounds what is searched for, in characters: search looks at 64 terms, and a pasted page is no query.
	maxQuery = 400
	// maxSaid bounds what is looked at of one message, in bytes: what a learner types; the rest is pasted material.
	maxSaid = 4 << 10
	// abortedResult is what a tool result says when its run was stopped: what was asked before it is no longer waiting.
	abortedResult = "Operation aborted"
)

// question is what the learner wants.
type question struct {
	query    string   // what to search for; "": there are no words
	words    []string // those that name a subject, for telling
	chinese  bool
	quiz     bool
	attached bool // text came with it, which is not searched
}

// asked finds the question: what the learner said since the last finished answer. When that has no subject of its own, the
// attached text gives one, else the last question that had one. open are the messages that came after it.
func asked(messages []llm.Message) (q question, open []llm.Message) {
	last := lastUser(messages)
	if last < 0 {
		return question{}, nil
	}
	open = messages[last+1:]
	first := last
	for i := last - 1; i >= 0 && !finishes(&messages[i]); i-- {
		if isQuestion(&messages[i]) {
			first = i
		}
	}
	var said, attachments []string
	for i := first; i <= last; i++ {
		if isQuestion(&messages[i]) {
			text, attachment := splitAttachment(valid(&messages[i]))
			said = append(said, clip(text))
			attachments = append(attachments, clip(attachment))
		}
	}
	attachment := strings.TrimSpace(strings.Join(attachments, "\n"))
	text := strings.TrimSpace(strings.Join(said, "\n"))
	q = question{attached: attachment != "", chinese: isChinese(text)}
	if text == "" {
		q.chinese = isChinese(attachment)
	}
	whole := false
	for i, s := range said {
		if w, quiz := quizWish(s); quiz {
			q.quiz, said[i], whole = true, w.topic, w.whole
		}
	}
	q.query = strings.TrimSpace(strings.Join(said, "\n"))
	switch subject := contentWords(q.query); {
	case len(subject) == 0 && attachment != "":
		q.query = attachment
	case whole && len(subject) == 0:
		q.query = ""
	case len(subject) == 0 && q.quiz:
		q.query = previous(messages[:first])
	case len(subject) == 0 || len(subject) == 1 && pointsBack(q.query):
		q.query = strings.TrimSpace(previous(messages[:first]) + " " + q.query)
	}
	q.query = strings.Join(strings.Fields(q.query), " ")
	if r := []rune(q.query); len(r) > maxQuery {
		q.query = string(r[:maxQuery])
	}
	q.words = contentWords(q.query)
	return q, open
}

func lastUser(messages []llm.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if isQuestion(&messages[i]) {
			return i
		}
	}
	return -1
}

// isQuestion leaves out the summaries that stand for earlier messages: a sentence about them, then the summary between tags.
func isQuestion(m *llm.Message) bool {
	if m.Role != llm.RoleUser {
		return false
	}
	text := strings.TrimSpace(m.Text())
	return !strings.HasSuffix(text, "</summary>") || !strings.Contains(text, ":\n\n<summary>\n")
}

// finishes reports messages after which nothing that was asked before is waiting.
func finishes(m *llm.Message) bool {
	switch m.Role {
	case llm.RoleAssistant:
		return len(m.ToolCalls()) == 0 || m.StopReason == llm.StopAborted || m.StopReason == llm.StopError
	case llm.RoleToolResult:
		return m.Failed() && m.Text() == abortedResult
	}
	return false
}

// previous is the subject of the last question that had one.
func previous(messages []llm.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if !isQuestion(&messages[i]) {
			continue
		}
		text, _ := splitAttachment(valid(&messages[i]))
		text = clip(text)
		if w, quiz := quizWish(text); quiz {
			text = w.topic
		}
		if len(contentWords(text)) > 0 {
			return text
		}
	}
	return ""
}

// splitAttachment parts a message at the line that announces attached or selected text, such as "Attached text (stdin):".
func splitAttachment(text string) (question, attachment string) {
	at := 0
	for line := range strings.Lines(text) {
		l := strings.TrimSpace(line)
		announces := startsWithAny(l, "Attached Selected 附加文本 附件")
		if announces && (strings.HasSuffix(l, ":") || strings.HasSuffix(l, "\uff1a")) {
			return text[:at], text[at+len(line):]
		}
		at += len(line)
	}
	return text, ""
}

// valid is the message's text; what is no text in it would not survive in an answer.
func valid(m *llm.Message) string { return strings.ToValidUTF8(m.Text(), "\ufffd") }

// clip is the beginning of a text, in whole characters.
func clip(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	end := maxSaid
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
