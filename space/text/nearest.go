package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxCompared bounds the bytes of a line that are compared, and maxAround the lines before and behind it: more would hardly change the order of the
	// places.
	maxCompared, maxAround = 400, 20
	// maxPromising bounds the places that are compared exactly: the rough look at all others is as cheap as reading them.
	maxPromising = 64
	// leastSimilar is below what a place is no candidate, and maxNearest how many there are.
	leastSimilar, maxNearest = 0.4, 3
	// maxShown bounds the characters of a line in an error, and shownBefore those of them before what it is about.
	maxShown, shownBefore = 200, 20
)

// Nearest finds up to three places of a text that are most like another text. The time is linear in both.
func Nearest(s, like string) []Candidate { return (&indexed{s: s}).nearest(like) }

// A promising place is bytes [at, end) of a line.
type promising struct {
	line, at, end int
	rough         int // how many pairs of bytes it has of those that are looked for
}

// nearest looks for the longest line of a text in all places roughly, and compares the lines around the most promising ones.
func (x *indexed) nearest(old string) []Candidate {
	x.cut()
	want := SplitLines(old)
	longest, key := 0, ""
	for i, l := range want {
		if t := strings.TrimSpace(l.Text); len(t) > len(key) {
			longest, key = i, t
		}
	}
	if key = begin(key); key == "" {
		return nil
	}
	counted := newPairs(key)
	var out []Candidate
	for _, p := range x.promising(key) {
		line := x.lines[p.line].Text
		best, at := counted.best(line[p.at:p.end])
		if best < leastSimilar {
			continue
		}
		first := max(0, p.line-longest)
		at += p.at
		if first != p.line {
			at = 0
		}
		c := Candidate{first + 1, shown(x.lines[first].Text, at), x.alike(want, longest, p.line, best)}
		if c.Similarity < leastSimilar {
			continue
		}
		same := slices.IndexFunc(out, func(o Candidate) bool { return o.Line == c.Line })
		switch {
		case same < 0:
			out = append(out, c)
		case out[same].Similarity < c.Similarity:
			out[same] = c
		}
	}
	slices.SortStableFunc(out, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Line, b.Line))
	})
	return out[:min(len(out), maxNearest)]
}

// alike compares the lines around two lines, the similarity of which is known, each for as much as it is long.
func (x *indexed) alike(want []Line, i, at int, known float64) float64 {
	length := len(begin(want[i].Text))
	sum, all := known*float64(length), float64(length)
	for k := max(0, i-maxAround); k < min(len(want), i+maxAround+1); k++ {
		w := begin(strings.TrimSpace(want[k].Text))
		if k == i || w == "" {
			continue
		}
		all += float64(len(w))
		if n := at + k - i; n >= 0 && n < len(x.lines) {
			sum += newPairs(w).of(begin(strings.TrimSpace(x.lines[n].Text))) * float64(len(w))
		}
	}
	return sum / all
}

// promising lists the places that have most of the pairs of bytes of a key, its beginning counted as one. Long lines are looked at in overlapping pieces.
func (x *indexed) promising(key string) []promising {
	var sought [1 << 16]bool
	number := 0
	for i, last := 0, byte(0); i < len(key); i++ {
		if pair := int(last)<<8 | int(key[i]); !sought[pair] {
			sought[pair], number = true, number+1
		}
		last = key[i]
	}
	var seen [1 << 16]int32 // the last piece that a pair was seen in
	piece := int32(0)
	least := max(1, int(float64(number)*leastSimilar/2)) // a pair of characters may differ in one of its pairs of bytes
	step := max(len(key), 32)
	var out []promising
	for i, l := range x.lines {
		body := strings.TrimLeftFunc(l.Text, unicode.IsSpace)
		lead := len(l.Text) - len(body)
		body = strings.TrimRightFunc(body, unicode.IsSpace)
		for at := 0; at < len(body); at += step {
			end := min(len(body), at+2*step)
			piece++
			rough, last := 0, byte(0)
			for k := at; k < end; k++ {
				pair := int(last)<<8 | int(body[k])
				if sought[pair] && seen[pair] != piece {
					seen[pair], rough = piece, rough+1
				}
				last = body[k]
			}
			if rough >= least {
				out = append(out, promising{i, lead + at, lead + end, rough})
			}
			if len(out) == 8*maxPromising {
				if out = mostPromising(out); len(out) == maxPromising {
					least = max(least, out[maxPromising-1].rough+1)
				}
			}
			if end == len(body) {
				break
			}
		}
	}
	return mostPromising(out)
}

func mostPromising(list []promising) []promising {
	slices.SortStableFunc(list, func(a, b promising) int { return cmp.Compare(b.rough, a.rough) })
	return list[:min(len(list), maxPromising)]
}

// pairs counts the pairs of neighbouring characters of a text, and one for its beginning.
type pairs struct {
	number map[[2]rune]int
	counts []int
	length int
}

func newPairs(s string) *pairs {
	p := &pairs{number: map[[2]rune]int{}}
	last := rune(0)
	for _, r := range s {
		n, known := p.number[[2]rune{last, r}]
		if !known {
			n = len(p.counts)
			p.number[[2]rune{last, r}] = n
			p.counts = append(p.counts, 0)
		}
		p.counts[n]++
		p.length++
		last = r
	}
	return p
}

// of is the similarity to a whole text: Dice's coefficient of the pairs of both, 1 when they are the same.
func (p *pairs) of(s string) float64 {
	left := slices.Clone(p.counts)
	common, length, last := 0, 0, rune(0)
	for _, r := range s {
		if n, known := p.number[[2]rune{last, r}]; known && left[n] > 0 {
			left[n]--
			common++
		}
		length++
		last = r
	}
	return dice(common, p.length, length)
}

// best is the similarity to a text, or to the part of it as long as the one counted that is most like it, and where that begins.
func (p *pairs) best(s string) (similarity float64, at int) {
	similarity = p.of(s)
	var runes []rune
	var offsets []int // of each in s
	for i, r := range s {
		runes, offsets = append(runes, r), append(offsets, i)
	}
	if len(runes) <= p.length {
		return similarity, 0
	}
	have := make([]int, len(p.counts))
	common := 0
	numberOf := func(i int) (int, bool) {
		pair := [2]rune{0, runes[i]}
		if i > 0 {
			pair[0] = runes[i-1]
		}
		n, known := p.number[pair]
		return n, known
	}
	for i := range runes {
		if n, known := numberOf(i); known {
			if have[n]++; have[n] <= p.counts[n] {
				common++
			}
		}
		if i < p.length {
			continue
		}
		gone := i - p.length
		if n, known := numberOf(gone); known {
			if have[n]--; have[n] < p.counts[n] {
				common--
			}
		}
		if d := dice(common, p.length, p.length); d > similarity {
			similarity, at = d, offsets[gone+1]
		}
	}
	return similarity, at
}

func dice(common, a, b int) float64 {
	if a+b == 0 {
		return 0
	}
	return 2 * float64(common) / float64(a+b)
}

// begin is the part of a line that is compared.
func begin(s string) string { return cutAt(s, maxCompared) }

// cutAt is the first bytes of s up to n, without a part of a character.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// shown cuts a line for an error so that what begins at a byte can be seen.
func shown(s string, at int) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	before, out := "", s
	if at > maxShown {
		from := at
		for n := 0; n < shownBefore && from > 0; n++ {
			_, size := utf8.DecodeLastRuneInString(s[:from])
			from -= size
		}
		before, out = "…", s[from:]
	}
	n := 0
	for i := range out {
		if n++; n > maxShown {
			return before + out[:i] + "…"
		}
	}
	return before + out
}
