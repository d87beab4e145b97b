package offline

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// wish is what the learner wants to practise.
type wish struct {
	topic string // "": nothing was named
	whole bool   // everything there is was named
}

// quizWish reports whether text asks for practice, and what about. Practice as the subject of a question is no such wish: what
// counts is that the sentence tells someone to quiz, test or practise, or names a quiz and nothing else.
func quizWish(text string) (w wish, quiz bool) {
	var topics []string
	for _, sentence := range sentences(text) {
		topic, is := englishQuiz(sentence)
		if !is {
			topic, is = chineseQuiz(sentence)
		}
		switch {
		case !is:
			topic = sentence
		case wholeSpace(topic):
			topic, w.whole = "", true
		}
		quiz = quiz || is
		if topic = strings.TrimSpace(topic); len(contentWords(topic)) > 0 { // courtesies and "it" are no topic
			topics = append(topics, topic)
		}
	}
	w.topic = strings.Join(topics, " ")
	return w, quiz
}

// marks end a clause, in both alphabets; the last five are the full-width ! ? ; , and :
const marks = ".!?;,。\uff01\uff1f\uff1b\uff0c\uff1a"

// sentences parts text where a wish can begin, keeping the marks.
func sentences(text string) (out []string) {
	start := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		inName := r == '.' && end < len(text) && text[end] != ' ' && text[end] != '\n' // notes/cells.md, 3.5
		if strings.ContainsRune(marks+"\n", r) && !inName {
			out = append(out, strings.TrimSpace(text[start:end]))
			start = end
		}
	}
	return append(out, strings.TrimSpace(text[start:]))
}

// englishQuiz looks at one sentence: courtesies, then a verb of practice or of making, then what is wanted and about what.
func englishQuiz(sentence string) (topic string, quiz bool) {
	words := strings.Fields(strings.ToLower(sentence))
	original := strings.Fields(sentence)
	for i := range words {
		words[i] = strings.Trim(words[i], ".,!?;:\"'()")
	}
	n := courtesies(words)
	polite := n > 0
	words, original = words[n:], original[n:]
	if len(words) == 0 {
		return "", false
	}
	used := 0
	switch first := words[0]; {
	case first == "quiz" || first == "drill" || first == "cloze":
		used = 1
	case first == "test" || first == "examine":
		used = 1
		if len(words) == 1 || !slices.Contains([]string{"me", "us", "my", "our"}, words[1]) {
			used = 0
		}
	case isPractise(first) && !(len(words) > 1 && assertsAfter(words[1])) && (polite || !strings.HasSuffix(sentence, "?")):
		used = 1
	case first == "turn" || first == "make":
		if into := slices.Index(words, "into"); into > 0 && quizNoun(words[into+1:]) {
			return strings.Join(original[1:into], " "), true
		}
	}
	if used == 0 {
		used = wantedQuiz(words)
	}
	if used == 0 {
		return "", false
	}
	for used < len(words) && (quizFiller(words[used]) || isQuizNoun(words[used])) {
		used++
	}
	return strings.Trim(strings.Join(original[used:], " "), " .,!?;:"), true
}

// courtesies counts the words before the wish itself.
func courtesies(words []string) (n int) {
	for n < len(words) {
		switch words[n] {
		case "please", "now", "ok", "okay", "so", "then", "and", "hey", "hi", "hello", "repa", "just", "let's", "lets", "", "could", "can", "would",
			"will", "you", "i", "i'd", "want", "like", "need", "to", "let", "help", "time", "maybe":
			if asksMe(words[n:]) {
				return n
			}
			n++
		case "me", "us": // let me practise
			if n == 0 || words[n-1] != "let" && words[n-1] != "help" {
				return n
			}
			n++
		default:
			return n
		}
	}
	return n
}

// asksMe reports questions to which "practise" may be the answer: they are not courtesies.
func asksMe(words []string) bool {
	first, second := words[0], ""
	if len(words) > 1 {
		second = words[1]
	}
	return (first == "can" || first == "could" || first == "would" || first == "will") && second != "you" && second != "we"
}

// wantedQuiz counts the words of "(give me) five practice questions", 0 when it is something else.
func wantedQuiz(words []string) int {
	n, verb, named := 0, false, false
	switch words[0] {
	case "make", "give", "create", "write", "generate", "prepare", "set", "build", "start", "do", "take", "have", "ask", "begin":
		n, verb = 1, true
	}
	begin := n
	for n < len(words) && (quizFiller(words[n]) || isQuizNoun(words[n])) && !aboutWord(words[n]) {
		named = named || isQuizNoun(words[n]) && (words[n] != "questions" && words[n] != "question" || verb)
		n++
	}
	if !named || n == begin || n < len(words) && !aboutWord(words[n]) {
		return 0
	}
	if !verb && n == len(words) && n == 1 && !strings.HasPrefix(words[0], "quiz") {
		return 0 // "Test" or "questions" alone is no wish
	}
	return n
}

func quizNoun(words []string) bool {
	return len(words) > 0 && wantedQuiz(append([]string{"make"}, words...)) > 0
}

func isPractise(w string) bool {
	return w == "practise" || w == "practice" || w == "practising" || w == "practicing"
}

func isQuizNoun(w string) bool {
	switch w {
	case "quiz", "quizzes", "quizz", "test", "tests", "cloze", "clozes", "exercise", "exercises", "question", "questions", "practice", "practise",
		"fill-in-the-blank", "fill-in-the-blanks", "gap-fill", "blanks", "self-test":
		return true
	}
	return false
}

// quizFiller are the words between the wish and its topic.
func quizFiller(w string) bool {
	switch w {
	case "me", "us", "my", "our", "a", "an", "some", "few", "more", "another", "short", "quick", "little", "easy", "hard", "new", "good", "three",
		"four", "five", "3", "4", "5", "review", "session", "with", "please", "again", "knowledge", "understanding", "memory", "in", "fill", "the",
		"text", "deletion", "sentences", "to", "myself", "what":
		return true
	}
	return aboutWord(w)
}

func aboutWord(w string) bool {
	switch w {
	case "about", "on", "of", "from", "for", "over", "with", "covering", "", "using", "please", "now":
		return true
	}
	return false
}

// assertsAfter are words that make "practice" the subject of a statement.
func assertsAfter(w string) bool {
	switch w {
	case "makes", "is", "was", "are", "were", "does", "did", "do", "helps", "help", "can", "could", "will", "would", "should", "has", "had", "may",
		"might", "must", "works", "work", "improves", "and", "or", "versus", "vs", "effect", "effects", "schedule", "schedules":
		return true
	}
	return false
}

// wholeSpace reports topics that mean everything there is.
func wholeSpace(topic string) bool {
	whole, other := false, false
	eachWord(strings.ToLower(topic), func(w string, _ int, cjk bool) {
		switch {
		case w == "everything" || w == "all" || w == "anything" || w == "folder" || w == "space" || w == "notes" || w == "files" || w == "whole":
			whole = true
		case cjk && strings.Trim(w, "全部所有整个一切内容笔记文件夹资料任何的我这里面") == "":
			whole = true
		case cjk || !functionWord(w) && !isQuizNoun(w) && w != "material" && w != "materials" && w != "here" && !isPractise(w):
			other = true
		}
	})
	return whole && !other
}

// chineseQuiz looks at one sentence. A wish to somebody counts anywhere; a bare word for practice only where it cannot be the
// subject of a question or statement.
func chineseQuiz(sentence string) (topic string, quiz bool) {
	s := strings.Trim(sentence, " \t:~"+marks)
	for cut := true; cut; {
		cut = false
		for p := range strings.FieldsSeq("请你 请 能不能 可不可以 你能 能 可以 你 现在 好的 那就 那 来 麻烦 我们 我想要 我想 我要 帮我 让我 给我 想 要 用") {
			if strings.HasPrefix(s, p) && s != p {
				s, cut = strings.TrimSpace(strings.TrimPrefix(s, p)), true
			}
		}
	}
	asks := containsAny(sentence, "为什么 为何 怎么 如何 怎样 什么 是否 有没有 哪 多少 吗 呢 是不是 多久")
	wish := containsAny(s, "考考我 考一考我 考我 测测我 测试我 测一测我 测一下我 考考 出题 出几道 出道 出一些题 出些题 出一道 出两道 出三道 出四道 出五道 出3道 出4道 出5道 出一份 出一套")
	courteous := strings.HasSuffix(strings.Trim(sentence, " "+marks), "吗") && !containsAny(sentence, "为什么 为何 怎么 如何 怎样 什么 是否 有没有")
	switch {
	case wish && (!asks || courteous || startsWithAny(s, "考 测 出")):
	case asks:
		return "", false
	case startsWithAny(s, "练习 练一练 练练 测验 自测 填空 出题 小测 做题 做练习 做填空 做几道 几道 一些练习 一份测验 一个测验 个测验 份测验") && !asserts(s):
	case endsWithAny(s, "测验 练习题 填空题 自测题 自测 小测 测试题 习题"):
	default:
		return "", false
	}
	topic = sentence
	for p := range strings.FieldsSeq(`能不能 可不可以 你能 可以 麻烦 考一考我 考考我 测一测我 测一下我 测测我 测试我 考考 考我 请你 请 帮我 给我 让我 我想要 我想 我要 现在 关于 有关
		出几道 出一些 出些 出一道 出两道 出三道 出四道 出五道 出3道 出4道 出5道 出道 出一份 出一套 做几道 几道 三道 四道 五道 一道 一份 一个 一套 的填空练习题 的填空练习 的填空题 的练习题 的测试题 的自测题 的测验题 的习题
		的测验 的小测 的自测 的题目 的题 填空练习题 填空练习 填空题 练习题 测试题 自测题 测验题 习题 出题 练一练 练练 做练习 方面 一下 好吗 可以吗 行吗 吗 吧`) {
		topic = strings.ReplaceAll(topic, p, " ")
	}
	topic = strings.Trim(topic, " \t:~"+marks)
	for p := range strings.FieldsSeq("练习 测验 自测 填空 小测 做题 根据 用 按 针对 就 来 能 你") {
		topic = strings.TrimSpace(strings.TrimPrefix(topic, p))
	}
	for p := range strings.FieldsSeq("测验 自测 小测 填空 出 来 的 做") {
		topic = strings.TrimSpace(strings.TrimSuffix(topic, p))
	}
	return strings.Trim(topic, " :、"+marks), true
}

// asserts reports that the word for practice at the beginning goes on as a noun.
func asserts(s string) bool {
	for p := range strings.FieldsSeq("练习 测验 自测 填空 小测") {
		rest, ok := strings.CutPrefix(s, p)
		if ok && startsWithAny(rest, "的 与 和 跟 对 时 中 后 前 能 会 是 比 可以 效应 测试有 有用 有助 让 使 越 很 不") {
			return true
		}
	}
	return false
}

func containsAny(s, list string) bool {
	for p := range strings.FieldsSeq(list) {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

func startsWithAny(s, list string) bool {
	for p := range strings.FieldsSeq(list) {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func endsWithAny(s, list string) bool {
	for p := range strings.FieldsSeq(list) {
		if strings.HasSuffix(s, p) {
			return true
		}
	}
	return false
}
