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
	often := count(pages)
	topic := termSet(q.query)
	var made []cloze
	var used []string
	for _, c := range candidates(q.words, topic, found) {
		p := &found[c.passage]
		sentence := p.text[c.sentence.from:c.sentence.to]
		term := key(sentence, p.heading, topic, often, used)
		if term == "" {
			continue
		}
		used = append(used, term)
		text := hide(p.text[c.from:c.sentence.to], term)
		made = append(made, cloze{c.passage, text, term, place(p.path, p.lineAt(c.from))})
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
	parts := []string{introduce(q, len(made))}
	answers := []string{q.in("Answers:", "答案："), ""}
	for i, c := range made {
		parts = append(parts, fmt.Sprintf("%d. > %s\n\n   — %s", i+1, c.text, c.place))
		answers = append(answers, fmt.Sprintf("%d. %s", i+1, c.key))
	}
	return join(append(parts, strings.Join(answers, "\n"))...)
}

// candidate is a sentence that may become a question. The quotation begins at from: a sentence that points back brings the one
// before it.
type candidate struct {
	passage  int
	from     int
	sentence unit
	score    float64
}

// candidates are the usable sentences about the topic, the best first; second sentences of a passage come after all first ones.
func candidates(words []string, topic map[string]bool, found []passage) []candidate {
	var out []candidate
	for i := range found {
		p := &found[i]
		if p.kind != prose {
			continue
		}
		around := shared(topic, p.above())
		units := p.units()
		var own []candidate
		for n, u := range units {
			c := candidate{passage: i, from: u.from, sentence: u}
			if n > 0 && refersBack(p.text[u.from:u.to]) {
				c.from = units[n-1].from
			}
			about := shared(topic, termSet(p.text[c.from:u.to]))
			if !usable(p.text[c.from:u.to]) || len(topic) > 0 && about+around == 0 {
				continue
			}
			c.score = float64(about + around)
			if len(emphasised(p.text[u.from:u.to])) > 0 {
				c.score++
			}
			if names(p, words) { // "spacing" rather than its relative "space"
				c.score += 2
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

// names reports that the passage or what stands above it holds one of the words as it was asked for.
func names(p *passage, words []string) bool {
	text := strings.ToLower(p.text + "\n" + p.heading + "\n" + p.path)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, strings.ToLower(w)) })
}

// refersBack reports sentences that cannot be understood without the one before.
func refersBack(sentence string) bool {
	if startsWithAny(sentence, "这 那 它 正是 其 所以 因此 但 后来") {
		return true
	}
	first, _, _ := strings.Cut(strings.ToLower(sentence), " ")
	switch strings.Trim(first, ",") {
	case "this", "that", "these", "those", "it", "its", "they", "he", "she", "such", "so", "but", "another", "then", "both":
		return true
	}
	return false
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

// key chooses what is left blank: an emphasised term, a term of the heading, else the rarest term. The topic itself is taken only
// when there is nothing else, and nothing is asked twice. "": there is no term.
func key(sentence, heading string, topic map[string]bool, c counts, used []string) string {
	fits := func(k string) bool {
		return isTerm(k) && !slices.ContainsFunc(used, func(u string) bool { return overlap(u, k) })
	}
	for _, k := range emphasised(sentence) {
		if fits(k) {
			return k
		}
	}
	headed := termSet(heading)
	best, rank := "", [4]int{}
	eachTerm(sentence, func(t string, at, end int) {
		if !c.term(t, sentence[at:end]) {
			return
		}
		k := c.whole(sentence, at, end)
		if !fits(k) {
			return
		}
		r := [4]int{flag(!topic[t]), flag(headed[t]), -c.terms[t], len(k)}
		if at == 0 {
			r[3] = 0 // a first word is often just a capital letter
		}
		if best == "" || slices.Compare(r[:], rank[:]) > 0 {
			best, rank = k, r
		}
	})
	return best
}

// overlap reports that one answer would give the other away.
func overlap(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return strings.Contains(a, b) || strings.Contains(b, a)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isTerm reports a key that is a term: with a letter, and not of function words alone.
func isTerm(k string) bool {
	return len(termSet(k)) > 0 && strings.ContainsFunc(k, func(r rune) bool { return isCJK(r) || isWord(r) && (r < '0' || r > '9') })
}

// term reports a word or pair of characters that is worth asking for. English verbs and adverbs are left out by their endings. A
// pair of characters is likely a word when it comes back and one of the two is seldom seen without the other.
func (c counts) term(t, written string) bool {
	a, n := utf8.DecodeRuneInString(t)
	if !isCJK(a) {
		return utf8.RuneCountInString(written) >= 4 && !endsWithAny(written, "ly ing ed")
	}
	b, _ := utf8.DecodeRuneInString(t[n:])
	together := c.terms[t]
	return together >= 2 && 2*together > max(c.runes[a], c.runes[b]) && !beside(a) && !beside(b)
}

// whole extends a pair of characters by those that nearly always stand beside it, to a term of at most four.
func (c counts) whole(sentence string, at, end int) string {
	together := c.terms[sentence[at:end]]
	bound := func(pair string, r rune) bool {
		return isCJK(r) && !beside(r) && 5*c.terms[pair] >= 4*together && utf8.RuneCountInString(sentence[at:end]) < 4
	}
	if first, n := utf8.DecodeRuneInString(sentence[at:]); !isCJK(first) {
		return sentence[at:end]
	} else if r, m := utf8.DecodeLastRuneInString(sentence[:at]); bound(sentence[at-m:at+n], r) {
		at -= m
	}
	for {
		_, n := utf8.DecodeLastRuneInString(sentence[:end])
		r, m := utf8.DecodeRuneInString(sentence[end:])
		if !bound(sentence[end-n:end+m], r) {
			return sentence[at:end]
		}
		end += m
	}
}

// beside reports characters that are often part of a term, and as often just next to one.
func beside(r rune) bool {
	return functionRune(r) || strings.ContainsRune("在和与就都也很为把被让给从而或及但又还不没更最比会能要想请一来起得上下出到去过个次几第每里着们有可等已只些样好自己", r)
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
