package offline

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxPassages = 3
	// maxQuote bounds one quotation, in characters: a paragraph of a note; the place tells where to read on.
	maxQuote = 480
	// weak: passages below this part of the best one's score are left out; they share a word with the question, no more.
	weak = 0.5
)

// answer writes the last message of a run from what the tools said.
func answer(q question, hits []hit, searches, reads []result) string {
	problems := failures(q, searches, reads)
	if len(hits) == 0 {
		if len(problems) == 0 {
			return nothing(q)
		}
		return join(problems...)
	}
	pages, found := readPages(reads)
	if len(found) == 0 {
		found = unread(hits, reads)
	}
	var body string
	switch {
	case len(found) == 0:
		body = nothingReadable(q)
	case q.quiz:
		body = quiz(q, pages, found)
	default:
		body = quotations(q, rank(q, hits, found))
	}
	return join(append([]string{body}, problems...)...)
}

// readPages parses what was read and parts it.
func readPages(reads []result) (pages []page, found []passage) {
	for _, r := range reads {
		if p, ok := parsePage(r); ok {
			found = append(found, passages(p, len(pages))...)
			pages = append(pages, p)
		}
	}
	return pages, found
}

// unread makes passages of the lines that search showed, where nothing could be read because there is no tool for it. A file
// that was tried in vain is not quoted: it may have changed.
func unread(hits []hit, reads []result) (found []passage) {
	if len(reads) > 0 {
		return nil
	}
	for _, h := range hits {
		one := passages(page{path: h.path, first: h.line, lines: []string{h.text}}, 0)
		found = append(found, one...)
	}
	return found
}

// scored is a passage with how well it answers.
type scored struct {
	passage
	score float64
}

// rank orders passages: by the part of the question's terms in them, less for terms in the heading and the path, and by the place
// that search gave to their lines. Equal ones keep the order of search.
func rank(q question, hits []hit, found []passage) []scored {
	inside, above := make([]map[string]bool, len(found)), make([]map[string]bool, len(found))
	for i := range found {
		inside[i], above[i] = termSet(found[i].text), found[i].above()
	}
	weights := weigh(termSet(q.query), inside, above)
	out := make([]scored, 0, len(found))
	for i := range found {
		p, own, around := &found[i], inside[i], above[i]
		score, total := 0.0, 0.0
		for _, w := range weights {
			total += w.weight
			switch {
			case own[w.term]:
				score += w.weight
			case around[w.term]:
				score += 0.7 * w.weight
			}
		}
		if total > 0 {
			score /= total
		}
		score += searched(p, i, hits, found)
		if p.kind == markup || strings.HasSuffix(p.text, "?") || strings.HasSuffix(p.text, "\uff1f") {
			score /= 4 // tags and links are seldom what the learner wants to read, and a question answers none
		}
		if score > 0 {
			out = append(out, scored{*p, score})
		}
	}
	slices.SortStableFunc(out, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	return out
}

// weighted is a term of the question. Weights are kept in order, so that sums are the same each time.
type weighted struct {
	term   string
	weight float64
}

// weigh gives the question's terms that stand anywhere, as only these tell passages apart, a weight that falls with the number of
// passages that hold them.
func weigh(terms map[string]bool, inside, above []map[string]bool) (out []weighted) {
	in, anywhere := map[string]int{}, map[string]bool{}
	for i := range inside {
		for t := range terms {
			if inside[i][t] {
				in[t]++
			}
			anywhere[t] = anywhere[t] || inside[i][t] || above[i][t]
		}
	}
	for t := range terms {
		if anywhere[t] {
			out = append(out, weighted{t, 1 / (1 + math.Log(float64(max(1, in[t]))))})
		}
	}
	slices.SortFunc(out, func(a, b weighted) int { return strings.Compare(a.term, b.term) })
	return out
}

// searched is the share that search's order has in a score. A heading that was found counts for the passage below it.
func searched(p *passage, index int, hits []hit, found []passage) float64 {
	for i, h := range hits {
		if h.path != p.path {
			continue
		}
		below := index == 0 || found[index-1].file != p.file || !found[index-1].reaches(h.line)
		if p.holds(h.line) || below && p.heading != "" && h.line < p.marks[0].line && isHeading(h.text) && strings.Trim(h.text, "# \t") == p.heading {
			return 0.6 / (1 + float64(i)/4)
		}
	}
	return 0
}

// reaches reports that the passage stands at or below the line.
func (p *passage) reaches(line int) bool { return p.marks[len(p.marks)-1].line >= line }

func quotations(q question, ranked []scored) string {
	terms := termSet(q.query)
	var parts []string
	for _, s := range ranked {
		if len(parts) == maxPassages || s.score < weak*ranked[0].score {
			break
		}
		text, line := quote(&s.passage, terms)
		parts = append(parts, blockquote(text)+"\n\n— "+place(s.path, line))
	}
	if len(parts) == 0 {
		return nothing(q)
	}
	return join(append(append([]string{found(q, len(parts))}, parts...), missing(q, ranked[:len(parts)]))...)
}

// missing tells which words of the question stand nowhere in what is quoted, when these are more than half of them.
func missing(q question, quoted []scored) string {
	seen := map[string]bool{}
	for _, s := range quoted {
		for _, terms := range []map[string]bool{termSet(s.text), s.above()} {
			maps.Copy(seen, terms)
		}
	}
	var absent []string
	for _, w := range q.words {
		if terms := termSet(w); len(terms) > 0 && shared(terms, seen) == 0 {
			absent = append(absent, w)
		}
	}
	if 2*len(absent) <= len(q.words) {
		return ""
	}
	return unmentioned(q, absent)
}

// quote is the passage, or of a long one the sentences from the best on, and the line on which it begins.
func quote(p *passage, terms map[string]bool) (text string, line int) {
	if utf8.RuneCountInString(p.text) <= maxQuote {
		return p.text, p.lineAt(0)
	}
	units := p.units()
	best, most := 0, -1
	for i, u := range units {
		if n := shared(terms, termSet(p.text[u.from:u.to])); n > most {
			best, most = i, n
		}
	}
	from, end := units[best].from, units[best].to
	for _, u := range units[best+1:] {
		if utf8.RuneCountInString(p.text[from:u.to]) > maxQuote {
			break
		}
		end = u.to
	}
	text = cut(p.text[from:end], maxQuote)
	if end < len(p.text) && !strings.HasSuffix(text, "…") {
		text += " …"
	}
	return text, p.lineAt(from)
}

func blockquote(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }

// join makes paragraphs of the parts that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n")
}

func place(path string, line int) string { return fmt.Sprintf("%s:%d", path, line) }
