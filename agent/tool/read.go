package tool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

type readTool struct {
	reader Reader
	keeper Keeper
	seen   *seen
}

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (*readTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "read",
		Description: `Read a text file of the space, or look at an image (PNG, JPEG, GIF, WebP, BMP). Each line comes with its number and a tab, which are not part of the file. ` +
			`Cite what you use as path:line, for example notes/primes.md:12. At most 2000 lines or 50 KiB are shown at once; ` +
			`continue with offset. The last line names the path and the revision that was read. Registered contents can be named repa:document/<id>.`,
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path of the file, relative to the space"},` +
			`"offset":{"type":"integer","minimum":1,"description":"First line to show, counted from 1"},` +
			`"limit":{"type":"integer","minimum":1,"description":"Number of lines to show"}},` +
			`"required":["path"],"additionalProperties":false}`),
	}
}

func (*readTool) Sequential() bool { return false }

func (r *readTool) Execute(ctx context.Context, _ string, raw json.RawMessage) (Result, error) {
	var args readArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, err
	}
	doc, err := r.reader.Read(ctx, cleanPath(args.Path))
	if err != nil {
		return failed(ctx, err)
	}
	if doc.Image != nil {
		r.seen.put(doc)
		return picture(doc), nil
	}
	lines := splitLines(doc.Text)
	from := max(args.Offset, 1)
	if from > len(lines) && from > 1 {
		return Failure(&domainError{"invalid_input", fmt.Sprintf("Offset %d is beyond the end of %s, which has %d lines.", from, doc.Path, len(lines))}), nil
	}
	r.seen.put(doc)
	shown := excerpt(doc, lines, from, args.Limit)
	members := map[string]any{
		"path": doc.Path, "revision": doc.Revision, "lines": len(lines), "from": shown.from, "to": shown.to, "truncated": shown.cut,
	}
	if shown.cut {
		kept, err := keep(ctx, r.keeper, doc.Text, members)
		if err != nil {
			return Result{}, err
		}
		shown.text += "[" + shown.note + kept + "]"
	}
	result := Text(strings.TrimSuffix(shown.text, "\n") + "\n" + machineLine(doc))
	result.Details, result.bounded = details(members), true
	return result, nil
}

// picture shows an image; there are no lines to choose from.
func picture(doc Document) Result {
	result := Text(fmt.Sprintf("Image %s (%s, %d bytes).\n%s", doc.Path, doc.Image.MimeType, doc.Size, machineLine(doc)))
	result.Content = append(result.Content, llm.Block{Type: llm.BlockImage, MimeType: doc.Image.MimeType, Data: base64.StdEncoding.EncodeToString(doc.Image.Data)})
	result.Details = details(map[string]any{"path": doc.Path, "revision": doc.Revision, "mimeType": doc.Image.MimeType, "size": doc.Size})
	return result
}

func machineLine(doc Document) string {
	return string(details(struct {
		ID       string `json:"id,omitempty"`
		Path     string `json:"path"`
		Revision string `json:"revision"`
		Encoding string `json:"encoding,omitempty"`
	}{doc.ID, doc.Path, doc.Revision, unusual(doc.Encoding)}))
}

// unusual is an encoding that a model should hear of.
func unusual(encoding string) string {
	if encoding == "utf-8" {
		return ""
	}
	return encoding
}

// splitLines gives the lines without their ends. A final line feed ends the last line and begins none.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

type shown struct {
	text     string // lines with their ends
	from, to int    // line numbers; to < from: none
	cut      bool
	note     string // how to see more, when it is cut
}

// excerpt shows the lines from the given one on.
func excerpt(doc Document, lines []string, from, limit int) shown {
	if len(lines) == 0 {
		return shown{text: "(the file is empty)", from: 1}
	}
	last := len(lines)
	if limit > 0 {
		last = min(last, from+limit-1)
	}
	last = min(last, from+maxLines-1)
	var b strings.Builder
	next := from
	for ; next <= last; next++ {
		line := fmt.Sprintf("%5d\t%s\n", next, lines[next-1])
		if b.Len()+len(line) > maxBytes {
			break
		}
		b.WriteString(line)
	}
	s := shown{text: b.String(), from: from, to: next - 1, cut: next <= len(lines)}
	switch {
	case next == from:
		s.note = fmt.Sprintf("Line %d of %d is %d KiB long, more than one read shows. Search for words of it instead%s.",
			from, len(lines), len(lines[from-1])>>10, after(from, len(lines)))
	case s.cut:
		s.note = fmt.Sprintf("Lines %d-%d of %d shown. Continue with offset %d.", from, s.to, len(lines), next)
	}
	return s
}

func after(line, total int) string {
	if line == total {
		return ""
	}
	return fmt.Sprintf(", or continue with offset %d", line+1)
}
