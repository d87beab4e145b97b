package ledger

import (
	"slices"

	"github.com/repa-app/repa/protocol"
)

// Text is a text of a request's input that lies in the space's store.
type Text struct {
	Part int    `json:"part"` // its place in the input's parts
	ID   string `json:"id"`   // of the object, 64 lower-case hexadecimal digits
	Size int64  `json:"size"` // bytes
}

// HasText reports whether a part of an input is a text.
func HasText(p protocol.InputPart) bool { return p.Kind == "text" || p.Kind == "selection" }

// digits is the length of an object's id.
const digits = 64

// fits reports whether the text is one of the input's.
func (t Text) fits(in protocol.Input) bool {
	if t.Part < 0 || t.Part >= len(in.Parts) || !HasText(in.Parts[t.Part]) {
		return false
	}
	valid := len(t.ID) == digits && t.Size > 0
	for _, c := range []byte(t.ID) {
		valid = valid && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f')
	}
	return valid
}

// apart is the fact without the texts that lie in the store.
func (f Admitted) apart() Admitted {
	f.Request = Apart(f.Request, f.Texts)
	if f.Run != nil {
		run := *f.Run
		run.Text = ""
		f.Run = &run
	}
	return f
}

// Apart returns the request without the given texts of its input. The request is not changed.
func Apart(r protocol.Request, texts []Text) protocol.Request {
	if len(texts) == 0 {
		return r
	}
	return WithInput(r, Replace(r.Input, texts, func(Text) string { return "" }))
}

// WithInput returns the request with another form of its input.
func WithInput(r protocol.Request, in protocol.Input) protocol.Request {
	r.Input = in
	if r.Submission.Input != nil {
		r.Submission.Input = &in
	}
	return r
}

// Replace returns the input with other texts in the places of the given ones. The input is not changed.
func Replace(in protocol.Input, texts []Text, by func(Text) string) protocol.Input {
	out := protocol.Input{Parts: slices.Clone(in.Parts)}
	for _, t := range texts {
		out.Parts[t.Part].Text = by(t)
	}
	return out
}

// Keep takes a request or run as it is now, in place of its record.
func (s *State) Keep(r protocol.Request) {
	r = Apart(r, s.Texts[r.RequestID])
	s.Requests[r.RequestID] = &r
}

// KeepRun is Keep for a run.
func (s *State) KeepRun(r protocol.Run) {
	if len(s.TextsOf(r)) > 0 {
		r.Text = ""
	}
	s.Runs[r.ID] = &r
}

// TextsOf returns the texts in the store from which a run's text is made; none when the run has it.
func (s *State) TextsOf(r protocol.Run) []Text {
	if len(r.RequestIDs) == 0 {
		return nil
	}
	return s.Texts[r.RequestIDs[0]]
}
