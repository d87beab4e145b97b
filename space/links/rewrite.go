package links

import (
	"cmp"
	"slices"
	"strings"
)

// Rewrite calls change with each destination that a Markdown text writes down, block by block in order: those of inline links and images, of autolinks, and
// of all definitions, also of unused ones. Where change answers true, the new destination is written instead, in a form that is read as exactly that string
// (a NUL as U+FFFD). All else stays byte-identical. A text in which nothing changes is returned itself.
//
// Angle brackets around a destination stay, and are added where they are needed. An autolink whose new destination has no scheme becomes an inline link
// with the old one as its text.
//
// Some few changes cannot be written in Markdown without another meaning of what is around; then the old destination stays. These are: an autolink in square
// brackets or behind an exclamation mark or a closing bracket, when a link around or before it would end to be one or begin to be another (as for a new
// destination without a scheme in the text of a link); an empty destination before a title, behind what would become an HTML tag; and destinations whose old
// text alone keeps a line from being a fence or a definition. A caller who must know compares the result of Find.
func Rewrite(src []byte, change func(destination string) (string, bool)) []byte {
	blocks := readBlocks(src)
	known := collect(blocks)
	var edits []edit
	for _, b := range blocks {
		for _, d := range b.definitions {
			if next, ok := changed(d.destination, change); ok && !d.bound {
				f := form{angled: d.place.angled, opens: d.opens, needed: true}
				edits = append(edits, edit{d.place.start, d.place.end, f.destination(next)})
			}
		}
		if len(b.lines) == 0 {
			continue
		}
		t := join(src, b.lines)
		for _, e := range rewriteText(&t, known, change) {
			from := t.source(e.start)
			edits = append(edits, edit{from, from + e.end - e.start, e.by})
		}
	}
	if len(edits) == 0 {
		return src
	}
	return apply(src, edits)
}

// changed asks for a new destination, and says false if it is the old one.
func changed(old string, change func(string) (string, bool)) (string, bool) {
	next, ok := change(old)
	next = strings.ReplaceAll(next, "\x00", replacement)
	return next, ok && next != old
}

// renewal is a use that gets another destination.
type renewal struct {
	*use
	index int // among the uses of its text
	next  string
}

// care is how much of the renewals of a text is given up for the sake of what stands around.
type care int

const (
	everything care = iota
	fragile         // is left out, and what else may be impossible
	autolinks       // are left out altogether
)

// falls reports whether a renewal is left out.
func (c care) falls(t *text, r renewal) bool {
	switch c {
	case fragile:
		return r.fragile || r.next == "" && r.titled && !r.place.angled || t.fenceLike(t.lineAt(r.place.start))
	case autolinks:
		return r.kind != inlineUse
	}
	return false
}

// rewriteText gives the edits of one text, in order. What they make of the text is read again, and if anything but the destinations is other than before
// they are made more carefully: without any character that could matter to what stands around, then with fewer renewals.
func rewriteText(t *text, known definitions, change func(string) (string, bool)) []edit {
	uses := readUses(t.bytes, known)
	var renewals []renewal
	for i := range uses {
		if u := &uses[i]; u.kind != referenceUse {
			if next, ok := changed(u.destination(t.bytes), change); ok {
				renewals = append(renewals, renewal{u, i, next})
			}
		}
	}
	for c := everything; c <= autolinks; c++ {
		renewals = slices.DeleteFunc(renewals, func(r renewal) bool { return c.falls(t, r) })
		for _, plain := range []bool{false, true} {
			if edits := write(t, renewals, plain); verified(t, known, uses, renewals, edits) {
				return edits
			}
		}
	}
	return nil
}

// write gives the edits that renew uses of a text.
func write(t *text, renewals []renewal, plain bool) []edit {
	edits := make([]edit, 0, len(renewals))
	for _, r := range renewals {
		from := r.place.start
		if r.place.angled {
			from--
		}
		f := form{angled: r.place.angled, opens: t.beginsLine(from), needed: r.titled, plain: plain}
		e := edit{start: r.place.start, end: r.place.end}
		var ok bool
		switch {
		case r.kind == inlineUse:
			e.by = f.destination(r.next)
		case r.kind == emailAutolink && isPlainEmail(r.next):
			e.by = strings.TrimPrefix(r.next, mailto)
		default:
			if e.by, ok = f.autolink(r.next); !ok {
				e = edit{r.start, r.end, f.link(strings.TrimPrefix(r.destination(t.bytes), mailtoOf(r.kind)), r.next)}
			}
		}
		edits = append(edits, e)
	}
	// The destination of a link stands behind those in its text.
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	return edits
}

// mailtoOf is what the kind of use has before what is written.
func mailtoOf(k useKind) string {
	if k == emailAutolink {
		return mailto
	}
	return ""
}

// verified reports whether the text with the edits is the same block with the same uses in the same places, and leads to the new destinations where it was
// renewed.
func verified(t *text, known definitions, uses []use, renewals []renewal, edits []edit) bool {
	if len(edits) == 0 {
		return true
	}
	after := t.with(edits)
	if !sameBlock(t, &after, edits) {
		return false
	}
	again := readUses(after.bytes, known)
	if len(again) != len(uses) {
		return false
	}
	move := movement(edits)
	for i := range uses {
		was, is := &uses[i], &again[i]
		want := ""
		if len(renewals) > 0 && renewals[0].index == i {
			want = renewals[0].next
			renewals = renewals[1:]
		} else {
			want = was.destination(t.bytes)
		}
		if is.image != was.image || is.definition != was.definition || is.titled != was.titled ||
			is.start != move(was.start) || is.end != move(was.end) || is.destination(after.bytes) != want {
			return false
		}
	}
	return true
}

// sameBlock reports whether the edits leave the block what it is. They change no beginning of a line so that it would begin another block, but a line may
// be part of a paragraph because of what comes later in it: one that begins like a fence because it has more backticks, and one that begins like a
// definition because no title can be read.
func sameBlock(before, after *text, edits []edit) bool {
	last := -1
	for _, e := range edits {
		i := before.lineAt(e.start)
		if i != last && before.fenceLike(i) && !after.fenceLike(i) {
			return false
		}
		last = i
	}
	_, _, _, was := readDefinition(before.bytes, 0)
	_, _, _, is := readDefinition(after.bytes, 0)
	return was || !is
}
