package space

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

type splice struct {
	at, end int
	text    string
}

func applyEdits(name string, before []byte, edits []Edit) ([]byte, error) {
	if len(edits) == 0 {
		return nil, fail("invalid_input", "%s was not changed: no edit was given", name)
	}
	var splices []splice
	for i, e := range edits {
		which := "the text to replace"
		if len(edits) > 1 {
			which = fmt.Sprintf("the text to replace in edit %d", i+1)
		}
		sp, err := locate(name, before, e, which)
		if err != nil {
			return nil, err
		}
		splices = append(splices, sp)
	}
	slices.SortFunc(splices, func(a, b splice) int { return a.at - b.at })
	var out []byte
	end := 0
	for _, sp := range splices {
		if sp.at < end {
			return nil, fail("invalid_input", "%s was not changed: two edits overlap at line %d; join them into one", name, lineAt(before, sp.at))
		}
		out = append(append(out, before[end:sp.at]...), sp.text...)
		end = sp.end
	}
	out = append(out, before[end:]...)
	if bytes.Equal(out, before) {
		return nil, fail("invalid_input", "%s was not changed: the new text equals the old", name)
	}
	return out, nil
}

// locate finds the one place of an edit. Models write line feeds; in a file with CRLF line ends those are meant.
func locate(name string, before []byte, e Edit, which string) (splice, error) {
	if e.Old == "" {
		return splice{}, fail("invalid_input", "%s was not changed: %s is empty", name, which)
	}
	found := occurrences(before, e.Old)
	if len(found) == 0 && bytes.Contains(before, []byte("\r\n")) {
		e.Old, e.New = crlf(e.Old), crlf(e.New)
		found = occurrences(before, e.Old)
	}
	switch len(found) {
	case 1:
		return splice{at: found[0], end: found[0] + len(e.Old), text: e.New}, nil
	case 0:
		return splice{}, fail("ambiguous_match", "%s was not changed: %s does not occur in it; read the file and copy the text exactly", name, which)
	}
	var lines []int
	for _, at := range found {
		lines = append(lines, lineAt(before, at))
	}
	err := fail("ambiguous_match", "%s was not changed: %s occurs %d times, at lines %s; add surrounding text until it is unique",
		name, which, len(found), strings.Trim(strings.Join(strings.Fields(fmt.Sprint(lines)), ", "), "[]"))
	err.details = map[string]any{"path": name, "lines": lines}
	return splice{}, err
}

func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// maxOccurrences bounds how many places an error lists.
const maxOccurrences = 20

// occurrences finds up to maxOccurrences places, overlapping ones too: "aa" stands twice in "aaa".
func occurrences(data []byte, text string) []int {
	var out []int
	for at := 0; at <= len(data)-len(text) && len(out) < maxOccurrences; at++ {
		i := bytes.Index(data[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i
		out = append(out, at)
	}
	return out
}

func lineAt(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }
