package links

// Use is a use of a destination in a text. All places are bytes of the text.
type Use struct {
	Destination string // with backslash escapes and entities resolved; an email autolink has mailto: before it
	Image       bool
	Line        int // of Start, from 1
	Start, End  int // the whole use, from [, ! or < on
	// Where the destination is written, without angle brackets: for a reference that is in its definition, which may stand anywhere in the text.
	DestinationStart, DestinationEnd int
}

// Find lists the uses of a Markdown text in the order of their beginnings: inline links and images, references that have a definition, and autolinks.
// Definitions by themselves are none.
func Find(src []byte) []Use {
	var out []Use
	blocks := readBlocks(src)
	known := collect(blocks)
	for _, b := range blocks {
		if len(b.lines) == 0 {
			continue
		}
		t := join(src, b.lines)
		for _, u := range readUses(t.bytes, known) {
			place := u.place
			if u.kind == referenceUse {
				place = u.definition.place
			} else {
				place = t.place(place)
			}
			out = append(out, Use{
				Destination: u.destination(t.bytes), Image: u.image, Line: t.lines[t.lineAt(u.start)].number,
				Start: t.source(u.start), End: t.source(u.end-1) + 1,
				DestinationStart: place.start, DestinationEnd: place.end,
			})
		}
	}
	return out
}

// collect gives the definitions that count: of several with one label the first.
func collect(blocks []block) definitions {
	known := definitions{}
	for _, b := range blocks {
		for i := range b.definitions {
			d := &b.definitions[i]
			if known[d.label] == nil {
				known[d.label] = d
			}
		}
	}
	return known
}
