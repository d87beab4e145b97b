package text

import (
	"slices"
	"strings"
)

// Conflict is a place where two changes overlap or touch. Lines count from 1; a number of 0 lines is a place before the line.
type Conflict struct {
	BaseLine, BaseLines     int
	OursLine, OursLines     int
	TheirsLine, TheirsLines int
}

// Merge joins two changes of one text, line by line. Changes that neither overlap nor touch are both made, and the same change is made once. The merged
// text is "" when there are conflicts.
func Merge(base, ours, theirs string) (merged string, conflicts []Conflict) {
	switch {
	case ours == theirs, theirs == base:
		return ours, nil
	case ours == base:
		return theirs, nil
	}
	lines := keepEnds(base)
	a, b := changes(lines, keepEnds(ours)), changes(lines, keepEnds(theirs))
	var out []string
	at, shiftA, shiftB := 0, 0, 0 // shift: by how much a line of base is later in the other
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0].touches(b[0]):
			if !a[0].same(b[0]) {
				c, restA, restB := clash(a, b, shiftA, shiftB)
				conflicts = append(conflicts, c)
				for ; len(a) > restA; a = a[1:] {
					shiftA += a[0].grows()
				}
				for ; len(b) > restB; b = b[1:] {
					shiftB += b[0].grows()
				}
				continue
			}
			out = append(append(out, lines[at:a[0].at]...), a[0].lines...)
			at = a[0].end
			shiftA, shiftB = shiftA+a[0].grows(), shiftB+b[0].grows()
			a, b = a[1:], b[1:]
		case len(b) == 0 || len(a) > 0 && a[0].at < b[0].at:
			out = append(append(out, lines[min(at, a[0].at):a[0].at]...), a[0].lines...)
			at, shiftA, a = a[0].end, shiftA+a[0].grows(), a[1:]
		default:
			out = append(append(out, lines[min(at, b[0].at):b[0].at]...), b[0].lines...)
			at, shiftB, b = b[0].end, shiftB+b[0].grows(), b[1:]
		}
	}
	if len(conflicts) > 0 {
		return "", conflicts
	}
	return strings.Join(append(out, lines[at:]...), ""), nil
}

// grows is by how many lines a change makes a text longer.
func (c change) grows() int { return len(c.lines) - (c.end - c.at) }

// touches reports whether two changes of one text overlap or are neighbours.
func (c change) touches(other change) bool { return c.at <= other.end && other.at <= c.end }

func (c change) same(other change) bool {
	return c.at == other.at && c.end == other.end && slices.Equal(c.lines, other.lines)
}

// clash joins all changes that touch one another, from the first ones on, and says how many of each are left.
func clash(a, b []change, shiftA, shiftB int) (c Conflict, restA, restB int) {
	at, end := min(a[0].at, b[0].at), max(a[0].end, b[0].end)
	growA, growB := a[0].grows(), b[0].grows()
	a, b = a[1:], b[1:]
	for {
		switch {
		case len(a) > 0 && a[0].at <= end:
			end, growA, a = max(end, a[0].end), growA+a[0].grows(), a[1:]
		case len(b) > 0 && b[0].at <= end:
			end, growB, b = max(end, b[0].end), growB+b[0].grows(), b[1:]
		default:
			n := end - at
			return Conflict{at + 1, n, at + shiftA + 1, n + growA, at + shiftB + 1, n + growB}, len(a), len(b)
		}
	}
}

// Revert takes the change from before to after back out of current, which was changed again since, and keeps what else was changed. The lines that the
// change made must stand in current as it made them, with nothing between them, and where they stand must be certain: on each side a line that occurs once in after and once in
// current, or the end of the text, leads to them over lines that nobody changed. Errors: code revision_conflict otherwise.
func Revert(before, after, current string) (string, error) {
	if current == after {
		return before, nil
	}
	if before == after {
		return current, nil
	}
	did, is := keepEnds(after), keepEnds(current)
	back, since := changes(did, keepEnds(before)), changes(did, is)
	onceDid, onceIs := once(did), once(is)
	var out []string
	at := 0
	for _, c := range back {
		for _, s := range since {
			if c.overlaps(s) || c.touches(s) && !allOnce(did[c.at:c.end], onceIs) {
				return "", fail("revision_conflict", "later changes overlap with it at line %d", s.at+1)
			}
		}
		if !anchored(did, since, c.at-1, -1, onceDid, onceIs) || !anchored(did, since, c.end, 1, onceDid, onceIs) {
			return "", fail("revision_conflict", "the text around line %d stands there more than once, so its place is uncertain", c.at+1)
		}
		from := c.at + shift(since, c.at)
		out = append(append(out, is[at:from]...), c.lines...)
		at = from + c.end - c.at
	}
	return strings.Join(append(out, is[at:]...), ""), nil
}

// overlaps reports whether a later change took away lines that a change made, or put something between them, or where the change left none.
func (c change) overlaps(later change) bool {
	if c.at == c.end {
		return later.at <= c.at && c.at <= later.end
	}
	return later.at < c.end && c.at < later.end || later.at == later.end && c.at < later.at && later.at < c.end
}

// allOnce reports whether each line that says something occurs once.
func allOnce(lines []string, once map[string]bool) bool {
	for _, l := range lines {
		if strings.TrimSpace(l) != "" && !once[l] {
			return false
		}
	}
	return true
}

// anchored follows lines in one direction to one that occurs once in both texts, or to the end of the text, over lines that were not changed since.
func anchored(lines []string, since []change, at, step int, onceA, onceB map[string]bool) bool {
	for ; at >= 0 && at < len(lines); at += step {
		for _, s := range since {
			if at >= s.at && at < s.end {
				return false
			}
		}
		if onceA[lines[at]] && onceB[lines[at]] {
			return true
		}
		edge := at // of the line, in the direction
		if step > 0 {
			edge = at + 1
		}
		for _, s := range since {
			if s.at == s.end && s.at == edge { // something was put in here
				return false
			}
		}
	}
	return true
}

// shift is by how much a line that was not changed is later now.
func shift(since []change, at int) (n int) {
	for _, s := range since {
		if s.end <= at {
			n += s.grows()
		}
	}
	return n
}

// once are the lines that occur exactly once and say something.
func once(lines []string) map[string]bool {
	count := map[string]int{}
	for _, l := range lines {
		count[l]++
	}
	out := map[string]bool{}
	for l, n := range count {
		out[l] = n == 1 && strings.TrimSpace(l) != ""
	}
	return out
}
