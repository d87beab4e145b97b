package offline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind tells how a passage was written.
type kind uint8

const (
	prose  kind = iota // paragraph, list item or quotation
	row                // of a table
	code               // lines of a fenced block
	markup             // tags, images, link targets
)

// passage is a piece of a page that can stand alone. Its lines are joined; marks tell where each began.
type passage struct {
	path    string
	heading string // the nearest above, without its marks
	kind    kind
	text    string
	marks   []mark
	file    int // index of its page
}

type mark struct{ at, line int }

// lineAt is the number of the line that holds the byte at.
func (p *passage) lineAt(at int) int {
	line := 0
	for _, m := range p.marks {
		if m.at <= at {
			line = m.line
		}
	}
	return line
}

func (p *passage) holds(line int) bool {
	return len(p.marks) > 0 && p.marks[0].line <= line && line <= p.marks[len(p.marks)-1].line
}

// above are the terms that say what the passage is about without being part of it.
func (p *passage) above() map[string]bool { return termSet(p.heading + "\n" + p.path) }

func (p *passage) add(text string, line int) {
	if p.text != "" {
		last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(p.text, "*_"))
		first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, "*_"))
		switch {
		case p.kind == code:
			p.text += "\n"
		case !(wide(last) && wide(first)):
			p.text += " "
		}
	}
	p.marks = append(p.marks, mark{len(p.text), line})
	p.text += text
}

// wide reports characters between which a line break stands for nothing.
func wide(r rune) bool { return isCJK(r) || r >= 0x3000 && r < 0x3040 || r >= 0xff00 && r < 0xff66 }

// splitter parts a page into passages by Markdown's block structure.
type splitter struct {
	page    page
	index   int
	out     []passage
	open    passage
	heading string
	fence   string // what closes the code block that is open
	quoted  bool
}

func passages(p page, index int) []passage {
	s := &splitter{page: p, index: index}
	body := frontMatter(p)
	for i, l := range p.lines[body:] {
		s.line(strings.TrimRight(l, " \t\r"), p.first+body+i)
	}
	s.flush()
	return s.out
}

// frontMatter counts the lines of the settings at the top of a file.
func frontMatter(p page) int {
	if p.first == 1 && strings.TrimSpace(p.lines[0]) == "---" {
		for i, l := range p.lines[1:] {
			if l = strings.TrimSpace(l); l == "---" || l == "..." {
				return i + 2
			}
		}
	}
	return 0
}

func (s *splitter) begin(k kind) {
	s.flush()
	s.open = passage{path: s.page.path, heading: s.heading, kind: k, file: s.index}
}

func (s *splitter) flush() {
	if s.open.text != "" {
		s.out = append(s.out, s.open)
	}
	s.open = passage{}
}

func (s *splitter) line(l string, number int) {
	text := strings.TrimSpace(l)
	if s.fence != "" {
		if strings.HasPrefix(text, s.fence) {
			s.fence = ""
			s.flush()
		} else if text != "" {
			s.open.add(l, number)
		}
		return
	}
	text, quoted := strings.CutPrefix(text, ">")
	text = strings.TrimSpace(text)
	if quoted != s.quoted {
		s.flush()
		s.quoted = quoted
	}
	item, isItem := listItem(text)
	switch {
	case text == "":
		s.flush()
	case strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~"):
		s.begin(code)
		s.fence = text[:3]
	case isHeading(text):
		s.flush()
		s.heading = strings.Trim(text, "# \t")
	case underline(text):
		if len(s.open.marks) == 1 {
			s.heading = s.open.text
			s.open = passage{}
		}
		s.flush()
	case text[0] == '|':
		s.begin(row)
		if strings.Trim(text, "|-: ") != "" {
			s.open.add(text, number)
		}
		s.flush()
	case isItem:
		s.begin(prose)
		s.open.add(item, number)
	default:
		if k := lineKind(text); s.open.text == "" || k != s.open.kind {
			s.begin(k)
		}
		s.open.add(text, number)
	}
}

func isHeading(text string) bool {
	rest := strings.TrimLeft(text, "#")
	n := len(text) - len(rest)
	return n > 0 && n <= 6 && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// underline reports the lines that make a heading of the line above, or draw a rule.
func underline(text string) bool {
	for _, c := range "=-*_" {
		if strings.Trim(text, string(c)+" ") == "" {
			return len(text) >= 2
		}
	}
	return false
}

// listItem takes the mark off a list item.
func listItem(text string) (string, bool) {
	rest := text
	switch {
	case text == "":
		return "", false
	case strings.IndexByte("-*+", text[0]) >= 0:
		rest = text[1:]
	default:
		rest = strings.TrimLeftFunc(text, func(r rune) bool { return r >= '0' && r <= '9' })
		if n := len(text) - len(rest); n == 0 || n > 4 || rest == "" || rest[0] != '.' && rest[0] != ')' {
			return "", false
		}
		rest = rest[1:]
	}
	if rest == "" || rest[0] != ' ' && rest[0] != '\t' {
		return "", false
	}
	rest = strings.TrimSpace(rest)
	for _, box := range [...]string{"[ ] ", "[x] ", "[X] "} {
		rest = strings.TrimPrefix(rest, box)
	}
	return rest, rest != ""
}

func lineKind(text string) kind {
	if text[0] == '<' || strings.HasPrefix(text, "![") || text[0] == '[' && strings.Contains(text, "]: ") {
		return markup
	}
	return prose
}

// longUnit is the length, in bytes, from which a run of lines without a full stop is data rather than a sentence.
const longUnit = 600

// unit is a sentence of a passage, from..to in its text.
type unit struct{ from, to int }

// units parts a passage into sentences. Code and what is too long for a sentence are parted at their lines.
func (p *passage) units() (out []unit) {
	start := 0
	one := func(end int) {
		from := start + len(p.text[start:end]) - len(strings.TrimLeft(p.text[start:end], " \n"))
		to := from + len(strings.TrimRight(p.text[from:end], " \n"))
		if from < to {
			out = append(out, unit{from, to})
		}
		start = end
	}
	add := func(end int) {
		if end-start > longUnit {
			for _, m := range p.marks {
				if m.at > start && m.at < end {
					one(m.at)
				}
			}
		}
		one(end)
	}
	for i, r := range p.text {
		end := i + utf8.RuneLen(r)
		if r == utf8.RuneError || end <= start {
			continue
		}
		rest := p.text[end:]
		switch {
		case r == '\n':
			add(end)
		case strings.ContainsRune("。\uff01\uff1f", r):
			add(end + closing(rest, wideClosers))
		case r == '.' || r == '!' || r == '?':
			n := closing(rest, closers)
			if n < len(rest) && rest[n] == ' ' && begins(rest[n+1:]) && !abbreviation(p.text[start:end]) {
				add(end + n)
			}
		}
	}
	add(len(p.text))
	return out
}

// The marks that still belong to the sentence they follow. After a full-width stop an asterisk may as well open the next one.
const (
	wideClosers = "\"”’」』\uff09"
	closers     = wideClosers + "')]*_"
)

func closing(rest, marks string) int { return len(rest) - len(strings.TrimLeft(rest, marks)) }

// begins reports that a sentence can begin with s.
func begins(s string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, "\"'([*_“‘ "))
	return unicode.IsUpper(r) || unicode.IsDigit(r) || isCJK(r)
}

func abbreviation(s string) bool {
	word := strings.ToLower(s[strings.LastIndexByte(s, ' ')+1:])
	switch strings.TrimLeft(word, "(") {
	case "e.g.", "i.e.", "dr.", "mr.", "mrs.", "ms.", "prof.", "vs.", "cf.", "al.", "etc.", "no.", "fig.", "p.", "pp.", "st.":
		return true
	}
	return false
}
