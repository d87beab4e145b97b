package text

// Line is one line of a text: what it says, and what ends it ("\r\n", "\n" or "\r"; "" for a last line without an end).
type Line struct{ Text, End string }

// SplitLines cuts s into lines. An end of line at the end of s ends the last line and begins none; "" has no lines. The lines joined
// again are s.
func SplitLines(s string) []Line {
	var out []Line
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' && s[i] != '\r' {
			i++
		}
		end := i
		switch {
		case end == len(s):
		case s[end] == '\r' && end+1 < len(s) && s[end+1] == '\n':
			end += 2
		default:
			end++
		}
		out = append(out, Line{s[:i], s[i:end]})
		s = s[end:]
	}
	return out
}

// JoinLines is the text that consists of lines.
func JoinLines(lines []Line) string {
	n := 0
	for _, l := range lines {
		n += len(l.Text) + len(l.End)
	}
	out := make([]byte, 0, n)
	for _, l := range lines {
		out = append(append(out, l.Text...), l.End...)
	}
	return string(out)
}
