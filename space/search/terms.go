package search

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalize folds what readers take for the same: full-width and half-width forms, ligatures, case.
func normalize(text string) string {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return strings.ToLower(norm.NFKC.String(text))
		}
	}
	return strings.ToLower(text)
}

// isCJK reports characters that are written without spaces between words.
func isCJK(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// eachTerm calls yield for every term of a normalised text, in order, with repetitions.
func eachTerm(text string, yield func(term string)) {
	var previous string // the CJK character before this one
	start := -1         // of the present word
	flush := func(end int) {
		if start >= 0 {
			yield(stem(text[start:end]))
			start = -1
		}
	}
	alone := false // previous began its run and has not been part of a pair
	for i, r := range text {
		if isCJK(r) {
			flush(i)
			c := string(r)
			if previous != "" {
				yield(previous + c)
				alone = false
			} else {
				alone = true
			}
			previous = c
			continue
		}
		if alone {
			yield(previous)
		}
		previous, alone = "", false
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			if start < 0 {
				start = i
			}
		} else {
			flush(i)
		}
	}
	if alone {
		yield(previous)
	}
	flush(len(text))
}

// stem removes common English endings, so that "spaced", "spaces" and "spacing" meet. It need not give a word, only the same
// form for relatives; other languages in Latin letters lose little by it.
func stem(word string) string {
	const shortest = 3 // what remains
	for _, ending := range []struct{ from, to string }{
		{"'s", ""}, {"ies", "y"}, {"sses", "ss"}, {"ations", "at"}, {"ation", "at"}, {"ings", ""}, {"ing", ""}, {"edly", ""},
		{"ied", "y"}, {"ed", ""}, {"ely", ""}, {"ly", ""}, {"es", ""}, {"s", ""}, {"e", ""},
	} {
		if base, ok := strings.CutSuffix(word, ending.from); ok && len(base)+len(ending.to) >= shortest && !strings.HasSuffix(word, "ss") {
			return undouble(base + ending.to)
		}
	}
	return word
}

func undouble(word string) string {
	if n := len(word); n > 3 && word[n-1] == word[n-2] && !strings.ContainsRune("lsz", rune(word[n-1])) {
		return word[:n-1]
	}
	return word
}

// functionWords carry no subject; a query is searched without them unless nothing else is left. Made at first use, so that the
// start of the program does not pay for it.
var functionWords = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`a about after again all also am an and any are as at be because been before being between both but by can
		could did do does doing don for from had has have having he her here his how i if in into is it its just me more most my no not of off
		on once only or other our out over own please same she should so some such tell than that the their them then there these they this
		those through to too under until up us very was we were what when where which while who whom why will with would you your explain
		describe`) {
		out[stem(w)] = true
	}
	// Chinese pairs that ask rather than name. Pairs that only straddle such a word and another are weak by their frequency.
	for _, pair := range strings.Fields(`什么 为什 么会 么是 怎么 怎样 如何 哪些 哪个 哪里 多少 是否 可以 能否 有没 没有 一下 我们 你们 他们 这个 那个 这些 那些
		请问 请解 解释 说明 告诉 诉我 关于 以及 因为 所以 就是 还是 或者 而且 但是 的是 是什 是怎 为何 吗的 么样 样的 一个 给我 帮我 我想 想知 知道`) {
		out[pair] = true
	}
	return out
})

// maxTerms bounds a query: a bit set of 64 holds them. Later terms of a longer query are left out.
const maxTerms = 64

// queryTerms returns the distinct terms of a query and the query as a phrase to look for, both normalised.
func queryTerms(query string) (terms []string, phrase string) {
	phrase = strings.TrimSpace(normalize(query))
	seen := map[string]bool{}
	var all []string
	eachTerm(phrase, func(t string) {
		if !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	})
	for _, t := range all {
		if !functionWords()[t] && len(terms) < maxTerms {
			terms = append(terms, t)
		}
	}
	if len(terms) == 0 {
		terms = all[:min(len(all), maxTerms)]
	}
	return terms, phrase
}
