package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/repa-app/repa/agent/llm"
)

const (
	// The limits of what one result shows are Pi's: about 12,000 tokens, which leaves room in the smallest context that is in use.
	maxLines = 2000
	maxBytes = 50 << 10
	// maxKept bounds what is kept of a result that grows with the space: as much as the largest document.
	maxKept = 16 << 20

	plainText = "text/plain"
)

// Kept names an output that was kept whole.
type Kept struct {
	ID        string `json:"id"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"` // bytes
}

// Keeper keeps an output for as long as its session exists. When Keep has returned without an error, the output is durable, so that a message
// may name it. Errors: ctx's, errors of the disk.
type Keeper interface {
	Keep(ctx context.Context, mediaType, text string) (Kept, error)
}

// keep keeps an output of which a result shows a part. It names the output in the details and returns what the model is told about it: nothing
// without a keeper. That an output cannot be kept is no reason to withhold the part; the error is that of a run that was stopped.
func keep(ctx context.Context, k Keeper, text string, details map[string]any) (note string, err error) {
	if k == nil {
		return "", nil
	}
	kept, err := k.Keep(ctx, plainText, text)
	switch {
	case err == nil:
		details["fullOutput"] = kept
		return " The whole is kept with the session: read repa:resource/" + kept.ID + ".", nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return "", err
	}
	return fmt.Sprintf(" The whole could not be kept: %v.", err), nil
}

// Bound returns a tool like t whose results show the model at most 2000 lines or 50 KiB of text, in whole lines; what is cut is kept whole by k,
// which may be nil, and named in the details as fullOutput. Blocks that are no text pass. The tools of a Set are bound already.
func Bound(t Tool, k Keeper) Tool { return bound{t, k} }

type bound struct {
	Tool
	keeper Keeper
}

// Prepare implements Preparer for tools that do.
func (b bound) Prepare(args json.RawMessage) json.RawMessage {
	if p, ok := b.Tool.(Preparer); ok {
		return p.Prepare(args)
	}
	return args
}

// Execute implements Tool.
func (b bound) Execute(ctx context.Context, callID string, args json.RawMessage) (Result, error) {
	r, err := b.Tool.Execute(ctx, callID, args)
	if err != nil || r.bounded {
		return r, err
	}
	var texts []string
	for _, block := range r.Content {
		if block.Type == llm.BlockText {
			texts = append(texts, block.Text)
		}
	}
	whole := strings.Join(texts, "\n")
	shown, lines := head(whole)
	if len(shown) == len(whole) {
		return r, nil
	}
	members := map[string]any{}
	if len(r.Details) > 0 {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(r.Details, &given); err != nil {
			return Result{}, fmt.Errorf("details of %s: %w", b.Spec().Name, err)
		}
		for name, v := range given {
			members[name] = v
		}
	}
	members["truncated"] = true
	note, err := keep(ctx, b.keeper, whole, members)
	if err != nil {
		return Result{}, err
	}
	text := fmt.Sprintf("%s\n[Lines 1-%d of %d shown.%s]", shown, lines, lineCount(whole), note)
	if lines == 0 {
		text = fmt.Sprintf("%s\n[The first %d KiB shown of a line of %d KiB.%s]", shown, len(shown)>>10, (strings.IndexByte(whole+"\n", '\n')+1023)>>10, note)
	}
	out := Result{Details: details(members), IsError: r.IsError, bounded: true, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
	for _, block := range r.Content {
		if block.Type != llm.BlockText {
			out.Content = append(out.Content, block)
		}
	}
	return out, nil
}

func lineCount(text string) int { return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1 }

// head returns as many whole lines from the beginning of a text as one result shows, without the last one's end, and their number. Of a first
// line that is too long it returns a part, and 0.
func head(text string) (string, int) {
	if len(strings.TrimSuffix(text, "\n")) <= maxBytes && lineCount(text) <= maxLines {
		return text, lineCount(text)
	}
	end, lines := 0, 0
	for lines < maxLines {
		n := strings.IndexByte(text[end:], '\n')
		if n < 0 {
			n = len(text) - end
		}
		if end+n > maxBytes || end == len(text) {
			break
		}
		end = min(end+n+1, len(text))
		lines++
	}
	if lines > 0 {
		return strings.TrimSuffix(text[:end], "\n"), lines
	}
	end = maxBytes
	for end > maxBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], 0
}
