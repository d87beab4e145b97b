package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// Three to five questions are one sitting; more would be asked for again.
	minClozes = 3
	maxClozes = 5
	// A sentence shorter than this gives its blank away or cannot be guessed, a longer one is no question any more. Characters.
	shortest, longest = 25, 320
	shortestChinese   = 10
	longestChinese    = 110
	// maxKey bounds an emphasised term that becomes a blank, in characters: beyond it, it is a sentence and no term.
	maxKey = 32

	blank = "____"
)

// cloze is one sentence with a blank.
type cloze struct {
	passage int // index in the passages found
	text    string
	key     string
	place   string
}

// quiz makes fill-in-the-blank questions of sentences about the topic.
func quiz(q question, pages []page, found []passage) string {
	counts := count(pages)
	var made []cloze
	used := map[string]bool{}
	for _, c := range candidates(q, found) {
		p := &found[c.passage]
		sentence := p.text[c.unit.from:c.unit.to]
		key := key(sentence, p.heading, termSet(q.query), counts, used)
		if key == "" {
			continue
		}
		used[fold(key)] = true
		made = append(made, cloze{c.passage, hide(sentence, key), key, place(p.path, p.lineAt(c.unit.from))})
		if len(made) == maxClozes {
			break
		}
	}
	if len(made) == 0 {
		return noSentence(q)
	}
	slices.SortStableFunc(made, func(a, b cloze) int { return cmp.Compare(a.passage, b.passage) }) // as the learner reads
	return clozes(q, made)
}

func clozes(q question, made []cloze) string {
	parts := []string{fewer(q, len(made))}
	answers := []string{q.in("Answers:", "答案："), ""}
	for i, c := range made {
		parts = append(parts, fmt.Sprintf("%d. > %s\n\n   — %s", i+1, c.text, c.place))
		answers = append(answers, fmt.Sprintf("%d. %s", i+1, c.key))
	}
	return join(append(parts, strings.Join(answers, "\n"))...)
}

// candidate is a sentence that may become a question.
type candidate struct {
	passage int
	unit    unit
	score   float64
}

// candidates are the usable sentences about the topic, the best first; second sentences of a passage come after all first ones.
func candidates(q question, found []passage) []candidate {
	terms := termSet(q.query)
	var out []candidate
	for i := range found {
		p := &found[i]
		if p.kind != prose {
			continue
		}
		around := shared(terms, termSet(p.heading+"\n"+p.path))
		var own []candidate
		for _, u := range p.units() {
			sentence := p.text[u.from:u.to]
			about := shared(terms, termSet(sentence))
			if !usable(sentence) || len(terms) > 0 && about+around == 0 {
				continue
			}
			c := candidate{i, u, float64(about) + float64(around)/2}
			if len(emphasised(sentence)) > 0 {
				c.score++
			}
			own = append(own, c)
		}
		slices.SortStableFunc(own, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
		for n := range own {
			own[n].score -= float64(n) * 100 // above any score: one sentence of each passage first
		}
		out = append(out, own...)
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	return out
}

func shared(a, b map[string]bool) (n int) {
	for t := range a {
		if b[t] {
			n++
		}
	}
	return n
}

// usable reports sentences that state something in plain text.
func usable(sentence string) bool {
	n, least, most := utf8.RuneCountInString(sentence), shortest, longest
	if chinese := strings.IndexFunc(sentence, isCJK) >= 0; chinese {
		least, most = shortestChinese, longestChinese
	}
	if n < least || n > most || strings.Contains(sentence, blank) {
		return false
	}
	for _, no := range [...]string{"](", "![", "[[", "://", "`", "<", "|"} {
		if strings.Contains(sentence, no) {
			return false
		}
	}
	end, _ := utf8.DecodeLastRuneInString(strings.TrimRight(sentence, closers))
	return end == '.' || end == '!' || end == '。' || end == '\uff01'
}

// counts is how often terms stand in all pages, and single characters for telling words from accidents.
type counts struct {
	terms map[string]int
	runes map[rune]int
}

func count(pages []page) counts {
	c := counts{map[string]int{}, map[rune]int{}}
	for _, p := range pages {
		for _, l := range p.lines {
			eachTerm(l, func(t string, _, _ int) { c.terms[t]++ })
			for _, r := range l {
				if isCJK(r) {
					c.runes[r]++
				}
			}
		}
	}
	return c
}

// key chooses what is left blank: an emphasised term, a term of the heading, else the rarest term. What the learner named as the
// topic and what was blank before come last and never; "" when there is nothing.
func key(sentence, heading string, topic map[string]bool, c counts, used map[string]bool) string {
	fits := func(k string) bool { return !used[fold(k)] && clear(k) }
	isTopic := func(k string) bool { return shared(termSet(k), topic) > 0 }
	var ofTopic string
	for _, k := range emphasised(sentence) {
		switch {
		case !fits(k):
		case !isTopic(k):
			return k
		case ofTopic == "":
			ofTopic = k
		}
	}
	headed := termSet(heading)
	best, rarity := "", [3]float64{}
	eachTerm(sentence, func(t string, at, end int) {
		k := sentence[at:end]
		if !fits(k) {
			return
		}
		cjk := strings.IndexFunc(k, isCJK) >= 0
		if !cjk && (utf8.RuneCountInString(k) < 4 || strings.HasSuffix(k, "ly")) || cjk && !c.word(t) {
			return
		}
		if isTopic(k) {
			if ofTopic == "" {
				ofTopic = k
			}
			return
		}
		r := [3]float64{0, -float64(c.terms[t]), float64(len(k))}
		if headed[t] {
			r[0] = 1
		}
		if best == "" || slices.Compare(r[:], rarity[:]) > 0 {
			best, rarity = k, r
		}
	})
	return cmp.Or(best, ofTopic)
}

// clear reports a key that is a term: with a letter, and not of function words alone.
func clear(k string) bool {
	return len(termSet(k)) > 0 && strings.ContainsFunc(k, func(r rune) bool { return isCJK(r) || isWord(r) && (r < '0' || r > '9') })
}

// word reports a pair of characters that is likely a word: it comes back, and its characters are mostly seen together.
func (c counts) word(pair string) bool {
	a, n := utf8.DecodeRuneInString(pair)
	b, _ := utf8.DecodeRuneInString(pair[n:])
	together := float64(c.terms[pair])
	return together >= 2 && together*together >= 0.2*float64(c.runes[a])*float64(c.runes[b])
}

// emphasised are the terms between asterisks or underscores.
func emphasised(sentence string) (out []string) {
	for i := 0; i < len(sentence); {
		m := marker(sentence[i:])
		if m == "" || i > 0 && m[0] == '_' && isWord(rune(sentence[i-1])) {
			i++
			continue
		}
		from := i + len(m)
		n := strings.Index(sentence[from:], m)
		if n <= 0 {
			i = from
			continue
		}
		term := sentence[from : from+n]
		if strings.TrimSpace(term) == term && utf8.RuneCountInString(term) <= maxKey && !strings.ContainsAny(term, "*_.。") {
			out = append(out, term)
		}
		i = from + n + len(m)
	}
	return out
}

func marker(s string) string {
	for _, m := range [...]string{"**", "__", "*", "_"} {
		if strings.HasPrefix(s, m) {
			return m
		}
	}
	return ""
}

func fold(s string) string { return strings.ToLower(s) }

// hide puts a blank in place of every occurrence of key that is a whole word, with the marks of emphasis around it.
func hide(sentence, key string) string {
	var b strings.Builder
	rest, before := sentence, rune(' ')
	for rest != "" {
		r, size := utf8.DecodeRuneInString(rest)
		if len(rest) >= len(key) && strings.EqualFold(rest[:len(key)], key) && !(isWord(before) && isWord(r)) {
			after, _ := utf8.DecodeRuneInString(rest[len(key):])
			last, _ := utf8.DecodeLastRuneInString(key)
			if !(isWord(last) && isWord(after)) {
				b.WriteString(blank)
				rest, before = rest[len(key):], last
				continue
			}
		}
		b.WriteString(rest[:size])
		rest, before = rest[size:], r
	}
	text := b.String()
	for _, m := range [...]string{"**", "__", "*", "_"} {
		text = strings.ReplaceAll(text, m+blank+m, blank)
	}
	return text
}
