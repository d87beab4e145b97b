package offline

import (
	"cmp"
	"fmt"
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

// scored is a passage with how well it answers, and where its quotation begins.
type scored struct {
	passage
	score float64
}

// rank orders passages: by the part of the question's terms in them, less for terms in the heading and the path, and by the place
// that search gave to their lines. Equal ones keep the order of search.
func rank(q question, hits []hit, found []passage) []scored {
	terms := termSet(q.query)
	present := map[string]bool{} // the question's terms that stand anywhere: only these can tell passages apart
	for i := range found {
		for t := range termSet(found[i].text + "\n" + found[i].heading + "\n" + found[i].path) {
			if terms[t] {
				present[t] = true
			}
		}
	}
	out := make([]scored, 0, len(found))
	for i := range found {
		p := &found[i]
		own, around := termSet(p.text), termSet(p.heading+"\n"+p.path)
		score := 0.0
		for t := range present {
			switch {
			case own[t]:
				score++
			case around[t]:
				score += 0.7
			}
		}
		score /= float64(max(1, len(present)))
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
		for t := range termSet(s.text + "\n" + s.heading + "\n" + s.path) {
			seen[t] = true
		}
	}
	var absent []string
	for _, w := range q.words {
		if shared(termSet(w), seen) == 0 {
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
	best, most := unit{0, len(p.text)}, -1
	for _, u := range p.units() {
		n := 0
		for t := range termSet(p.text[u.from:u.to]) {
			if terms[t] {
				n++
			}
		}
		if n > most {
			best, most = u, n
		}
	}
	end := best.to
	for _, u := range p.units() {
		if u.from >= best.from && utf8.RuneCountInString(p.text[best.from:u.to]) <= maxQuote {
			end = max(end, u.to)
		}
	}
	text = cut(p.text[best.from:end], maxQuote)
	if end < len(p.text) && !strings.HasSuffix(text, "…") {
		text += " …"
	}
	return text, p.lineAt(best.from)
}

func blockquote(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }

// join makes paragraphs of the parts that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n")
}

func place(path string, line int) string { return fmt.Sprintf("%s:%d", path, line) }
