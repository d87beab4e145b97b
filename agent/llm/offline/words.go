package offline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isCJK reports characters that are written without spaces between words.
func isCJK(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func isWord(r rune) bool {
	return !isCJK(r) && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// eachWord yields the words of text with their places: runs of letters and digits, and runs of Chinese, Japanese or Korean
// characters.
func eachWord(text string, yield func(word string, at int, cjk bool)) {
	start, cjk := -1, false
	flush := func(end int) {
		if start >= 0 {
			yield(text[start:end], start, cjk)
		}
		start = -1
	}
	for i, r := range text {
		c, w := isCJK(r), isWord(r)
		if start >= 0 && (!c && !w || c != cjk) {
			flush(i)
		}
		if start < 0 && (c || w) {
			start, cjk = i, c
		}
	}
	flush(len(text))
}

// eachTerm yields what is compared, with its place: stems of words that carry a subject, and overlapping pairs of Chinese,
// Japanese or Korean characters. It follows what search compares, so that a hit's terms are found again.
func eachTerm(text string, yield func(term string, at, end int)) {
	eachWord(text, func(word string, at int, cjk bool) {
		if !cjk {
			if !functionWord(strings.ToLower(word)) {
				yield(stem(strings.ToLower(word)), at, at+len(word))
			}
			return
		}
		previous, from := rune(0), 0
		for i, r := range word {
			if previous != 0 && !functionRune(previous) && !functionRune(r) {
				yield(word[from:i+len(string(r))], at+from, at+i+len(string(r)))
			}
			previous, from = r, i
		}
	})
}

func termSet(text string) map[string]bool {
	set := map[string]bool{}
	eachTerm(text, func(t string, _, _ int) { set[t] = true })
	return set
}

// stem lets relatives such as "spaced", "spaces" and "spacing" meet.
func stem(word string) string {
	const shortest = 3 // of what remains
	for _, ending := range [...]struct{ from, to string }{
		{"ies", "y"}, {"ations", "at"}, {"ation", "at"}, {"ings", ""}, {"ing", ""}, {"ied", "y"}, {"ed", ""}, {"ely", ""}, {"ly", ""},
		{"es", ""}, {"s", ""}, {"e", ""},
	} {
		if base, ok := strings.CutSuffix(word, ending.from); ok && len(base)+len(ending.to) >= shortest && !strings.HasSuffix(word, "ss") {
			base += ending.to
			if n := len(base); n > 3 && base[n-1] == base[n-2] && !strings.ContainsRune("lsz", rune(base[n-1])) {
				base = base[:n-1]
			}
			return base
		}
	}
	return word
}

// contentWords are the words of text that name a subject, as written, each once, in order.
func contentWords(text string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(w string) {
		if key := strings.ToLower(w); !seen[key] {
			seen[key] = true
			out = append(out, w)
		}
	}
	eachWord(text, func(word string, _ int, cjk bool) {
		switch {
		case cjk:
			for _, w := range splitChinese(word) {
				add(w)
			}
		case !functionWord(strings.ToLower(word)):
			add(word)
		}
	})
	return out
}

// splitChinese takes the phrases that only ask, point or connect out of a run of characters.
func splitChinese(run string) (rest []string) {
	start, i := 0, 0
	flush := func() {
		if strings.ContainsFunc(run[start:i], func(r rune) bool { return !functionRune(r) }) {
			rest = append(rest, run[start:i])
		}
	}
	for i < len(run) {
		n := functionPhrase(run[i:])
		if n == 0 {
			_, n = utf8.DecodeRuneInString(run[i:])
			i += n
			continue
		}
		flush()
		i += n
		start = i
	}
	flush()
	return rest
}

// functionPhrases are Chinese phrases without a subject of their own, longest first where one begins another.
const functionPhrases = `什么时候 是什么 为什么 怎么样 怎么办 能不能 可不可以 有没有 是不是 想知道 举个例子 举例子 详细一点 有什么 什么 怎么 怎样 如何 哪些 哪个 哪里 哪种
多少 是否 可以 能否 没有 一下 我们 你们 他们 它们 这个 那个 这些 那些 这里 那里 请问 请 解释 说明 告诉 关于 以及 因为 所以 就是 还是 或者 而且 但是 为何 一个
给我 帮我 我想 知道 应该 需要 有用 作用 吗 呢 吧 啊 的 了 是 在 和 与 我 你 他 她 它 这 那 也 很 详细 具体 例子 举例 继续 更多 展开 再说 多说 再讲 然后 接着 另外 还有
讲讲 说说 谈谈 讲一讲 说一说 介绍 一点 一些 一遍 不懂 意思 谢谢 好的 有关 相关 方面 内容`

// functionPhrase is the length of the function phrase that s begins with; 0: none.
func functionPhrase(s string) (n int) {
	for p := range strings.FieldsSeq(functionPhrases) {
		if len(p) > n && strings.HasPrefix(s, p) {
			n = len(p)
		}
	}
	return n
}

// functionRune reports characters that are hardly ever part of a Chinese term.
func functionRune(r rune) bool {
	return strings.ContainsRune("的了吗呢吧啊是再我你他她它这那么什怎哪", r)
}

// functionWord reports English words that carry no subject: those that ask, point, connect or ask for more. Lower case.
func functionWord(w string) bool {
	switch w {
	case "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before", "being",
		"between", "both", "but", "by", "can", "could", "d", "did", "do", "does", "doesn", "doing", "don", "each", "either", "every", "few", "for",
		"from", "had", "has", "have", "having", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "just",
		"let", "ll", "m", "may", "me", "might", "more", "most", "much", "must", "my", "no", "nor", "not", "of", "off", "on", "once", "one", "only",
		"or", "other", "our", "out", "over", "own", "per", "re", "s", "same", "shall", "she", "should", "so", "some", "such", "t", "than", "that",
		"the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "upon", "us",
		"ve", "very", "was", "we", "were", "what", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "will", "with",
		"within", "without", "would", "you", "your", "yours", "myself", "yourself", "itself":
		return true
	case "please", "kindly", "tell", "explain", "describe", "say", "says", "show", "give", "know", "think", "want", "like", "need", "mean", "means",
		"thing", "things", "way", "ways", "lot", "many", "make", "makes", "get", "gets", "really", "actually", "detail", "details", "example",
		"examples", "elaborate", "continue", "further", "simpler", "shorter", "longer", "briefly", "else", "ok", "okay", "yes", "thanks", "thank",
		"hello", "hi", "hey", "repa", "something", "anything", "someone", "even", "little", "less", "least", "well", "still", "often", "usually", "always", "never", "rather",
		"good", "bad", "better", "best", "great", "cannot", "somebody", "everybody", "nobody", "others", "another", "instead", "however", "though", "although", "since", "yet", "ever", "now":
		return true
	}
	return false
}

// pointsBack reports words that stand for something said before.
func pointsBack(text string) bool {
	found := false
	eachWord(strings.ToLower(text), func(w string, _ int, cjk bool) {
		switch {
		case cjk:
			found = found || strings.ContainsAny(w, "它这那该")
		case w == "it" || w == "its" || w == "this" || w == "that" || w == "they" || w == "them" || w == "these" || w == "those":
			found = true
		}
	})
	return found
}

// isChinese tells the language of a question from the words that ask; a question without any is in the language it has more of.
func isChinese(text string) bool {
	asksChinese, asksEnglish, han, latin := 0, 0, 0, 0
	eachWord(text, func(word string, _ int, cjk bool) {
		if !cjk {
			latin++
			if functionWord(strings.ToLower(word)) {
				asksEnglish++
			}
			return
		}
		for i := 0; i < len(word); {
			han++
			n := functionPhrase(word[i:])
			if n > 0 {
				asksChinese++
			} else {
				_, n = utf8.DecodeRuneInString(word[i:])
			}
			i += n
		}
	})
	if asksChinese != asksEnglish {
		return asksChinese > asksEnglish
	}
	return han > latin
}
