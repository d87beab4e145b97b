package llm

import "strings"

// Target is the model that a history is prepared for.
type Target struct {
	Provider string
	API      string
	Model    string
	NoImages bool                   // the model takes no images
	CallID   func(id string) string // makes the id of a foreign tool call acceptable; nil keeps it
}

const (
	noUserImage = "(image omitted: model does not support images)"
	noToolImage = "(tool image omitted: model does not support images)"
	noResult    = "No result provided"
)

// Handoff prepares a history for the target, whichever models wrote it. It does not change its input. Its result satisfies
// what every wire format asks for:
//
//   - Assistant messages that ended with error or aborted are left out, and so are messages without content that remain empty.
//   - Each tool call is followed directly by exactly one result: its own, or a synthetic error result. Results without a call are
//     left out.
//   - Messages of another provider, API or model carry no thinking and no signatures, and their call ids are normalised
//     together with those of their results. Messages of the same model keep signed and redacted thinking verbatim.
//   - Without image input each run of images is one placeholder text.
func Handoff(messages []Message, t Target) []Message {
	out := make([]Message, 0, len(messages))
	ids := callIDs{normalise: t.CallID, taken: map[string]string{}}
	for i := range messages {
		m := messages[i]
		switch m.Role {
		case RoleToolResult:
			continue // placed behind its call
		case RoleAssistant:
			if m.StopReason == StopError || m.StopReason == StopAborted {
				continue
			}
			foreign := m.Provider != t.Provider || m.API != t.API || m.Model != t.Model
			calls := m.ToolCalls()
			m.Content = assistantBlocks(m.Content, foreign)
			if len(m.Content) == 0 {
				continue
			}
			renamed := renameCalls(m.Content, foreign, &ids)
			out = append(out, m)
			out = append(out, resultsFor(calls, messages[i+1:], renamed, t.NoImages, m.Timestamp)...)
		default:
			if t.NoImages {
				m.Content = replaceImages(m.Content, noUserImage)
			}
			out = append(out, m)
		}
	}
	return out
}

func assistantBlocks(blocks []Block, foreign bool) []Block {
	kept := make([]Block, 0, len(blocks))
	for _, b := range blocks {
		switch b.Type {
		case BlockThinking:
			if foreign || b.ThinkingSignature == "" && strings.TrimSpace(b.Thinking) == "" {
				continue
			}
		case BlockText:
			if foreign {
				b.TextSignature = ""
			}
			if b.Text == "" && b.TextSignature == "" {
				continue
			}
		case BlockToolCall:
			if foreign {
				b.ThoughtSignature = ""
			}
		}
		kept = append(kept, b)
	}
	return kept
}

// callIDs gives foreign ids their normalised form, and keeps two ids apart that would become the same.
type callIDs struct {
	normalise func(string) string
	taken     map[string]string // normalised id → original
}

func (c *callIDs) rename(id string) string {
	if c.normalise == nil {
		return id
	}
	name := c.normalise(id)
	if other, ok := c.taken[name]; ok && other != id {
		name = hashed(name, id, min(len(name)+9, maxOpenAICallID))
	}
	c.taken[name] = id
	return name
}

func renameCalls(blocks []Block, foreign bool, ids *callIDs) map[string]string {
	renamed := map[string]string{}
	for i := range blocks {
		b := &blocks[i]
		if b.Type != BlockToolCall {
			continue
		}
		id := b.ID
		if foreign {
			b.ID = ids.rename(id)
		}
		renamed[id] = b.ID
	}
	return renamed
}

// resultsFor returns one result for each call: the one that later holds before the next answered assistant message, in the
// order of later, then synthetic errors for the calls without one.
func resultsFor(calls []Block, later []Message, renamed map[string]string, noImages bool, at int64) []Message {
	var out []Message
	done := map[string]bool{}
	for i := range later {
		m := later[i]
		if m.Role == RoleAssistant && m.StopReason != StopError && m.StopReason != StopAborted {
			break
		}
		id, wanted := renamed[m.ToolCallID]
		if m.Role != RoleToolResult || !wanted || done[m.ToolCallID] {
			continue
		}
		done[m.ToolCallID] = true
		m.ToolCallID = id
		if noImages {
			m.Content = replaceImages(m.Content, noToolImage)
		}
		out = append(out, m)
	}
	failed := true
	for _, c := range calls {
		if done[c.ID] {
			continue
		}
		done[c.ID] = true
		out = append(out, Message{
			Role: RoleToolResult, ToolCallID: renamed[c.ID], ToolName: c.Name, IsError: &failed, Timestamp: at,
			Content: []Block{{Type: BlockText, Text: noResult}},
		})
	}
	return out
}

func replaceImages(blocks []Block, placeholder string) []Block {
	out := make([]Block, 0, len(blocks))
	inRun := false
	for _, b := range blocks {
		if b.Type == BlockImage {
			if !inRun {
				out = append(out, Block{Type: BlockText, Text: placeholder})
			}
			inRun = true
			continue
		}
		inRun = false
		out = append(out, b)
	}
	return out
}
