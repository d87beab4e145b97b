package protocol

import "slices"

// Apply folds a change into a snapshot. Server and client share it, so both see the same state.
//
// What names a session or space that the snapshot does not hold is ignored, as are the changes that are only a signal to ask
// again (settings, request, queue, connection, capability, tool, execution_output). Records are replaced, never changed in place,
// with one exception: a delta changes the text of a block of the session's own message. A snapshot that shares messages with
// another one must therefore be Cloned first. Records of the change are shared with the snapshot, messages are copied.
func Apply(s *Snapshot, c Change) {
	switch c.Type {
	case ChangeLifecycle:
		s.Lifecycle = c.Lifecycle
	case ChangeSpace:
		s.Spaces = upsert(s.Spaces, *c.Space, func(space Space) bool { return space.ID == c.Space.ID })
	case ChangeContent:
		for i := range s.Spaces {
			if s.Spaces[i].ID == c.SpaceID {
				s.Spaces[i].ContentRevision = c.Revision
			}
		}
	case ChangeSession:
		view := c.Session.clone()
		s.Sessions = upsert(s.Sessions, view, func(other SessionView) bool { return other.Key() == view.Key() })
	case ChangeSessionRemoved:
		key := SessionKey{SpaceID: c.SpaceID, SessionID: c.SessionID}
		s.Sessions = slices.DeleteFunc(s.Sessions, func(view SessionView) bool { return view.Key() == key })
	case ChangeProcessing:
		s.Processing = retain(s.Processing, *c.Processing, c.Processing.Status.active(), func(other BackgroundRequest) bool {
			return other.RequestID == c.Processing.RequestID && other.SpaceID == c.Processing.SpaceID
		})
	case ChangeExecution:
		s.Execution = retain(s.Execution, *c.Execution, c.Execution.Status.active(), func(other ExecutionView) bool {
			return other.ID == c.Execution.ID && other.SpaceID == c.Execution.SpaceID
		})
	default:
		applyToSession(s, c)
	}
}

func applyToSession(s *Snapshot, c Change) {
	key := SessionKey{SpaceID: c.SpaceID, SessionID: c.SessionID}
	if c.Type == ChangeRun {
		key = SessionKey{SpaceID: c.Run.SpaceID, SessionID: c.Run.SessionID}
	}
	i := slices.IndexFunc(s.Sessions, func(view SessionView) bool { return view.Key() == key })
	if i < 0 {
		return
	}
	view := &s.Sessions[i]
	switch c.Type {
	case ChangeMessage:
		message := *c.Message
		message.Content = slices.Clone(message.Content)
		view.Messages = upsert(view.Messages, message, func(other Message) bool {
			return other.ID == message.ID || c.Replaces != "" && other.ID == c.Replaces
		})
	case ChangeDelta:
		for j := range view.Messages {
			if view.Messages[j].ID == c.MessageID {
				addDelta(&view.Messages[j], c)
			}
		}
	case ChangeRun:
		view.Runs = upsert(view.Runs, *c.Run, func(other Run) bool { return other.ID == c.Run.ID })
	case ChangeNotice:
		view.Notices = upsert(view.Notices, *c.Notice, func(other Notice) bool { return other.ID == c.Notice.ID })
	case ChangeInteraction:
		same := func(other Interaction) bool { return other.ID == c.ID }
		if c.Interaction == nil {
			view.Interactions = slices.DeleteFunc(view.Interactions, same)
		} else {
			view.Interactions = upsert(view.Interactions, *c.Interaction, same)
		}
	}
}

// maxBlocks bounds what one delta can make a snapshot grow by: no model answers in anywhere near as many pieces.
const maxBlocks = 10_000

func addDelta(m *Message, c Change) {
	if c.Index < 0 || c.Index >= maxBlocks {
		return
	}
	for Int(len(m.Content)) <= c.Index {
		m.Content = append(m.Content, Block{Type: BlockType(c.Kind)})
	}
	if block := &m.Content[c.Index]; block.Type == BlockType(c.Kind) {
		block.Text += c.Text
	}
}

// upsert replaces the first match and drops any later one, which a message with both its own id and the replaced one can have.
func upsert[T any](list []T, item T, same func(T) bool) []T {
	i := slices.IndexFunc(list, same)
	if i < 0 {
		return append(list, item)
	}
	list[i] = item
	rest := slices.DeleteFunc(list[i+1:], same)
	return list[:i+1+len(rest)]
}

// retain keeps a record while it is active.
func retain[T any](list []T, item T, active bool, same func(T) bool) []T {
	if active {
		return upsert(list, item, same)
	}
	return slices.DeleteFunc(list, same)
}

// Clone gives a snapshot that no later Apply to s can change.
func (s Snapshot) Clone() Snapshot {
	s.Spaces = slices.Clone(s.Spaces)
	s.Processing = slices.Clone(s.Processing)
	s.Execution = slices.Clone(s.Execution)
	s.Sessions = slices.Clone(s.Sessions)
	for i := range s.Sessions {
		s.Sessions[i] = s.Sessions[i].clone()
	}
	return s
}

func (v SessionView) clone() SessionView {
	v.Runs, v.Interactions, v.Notices = slices.Clone(v.Runs), slices.Clone(v.Interactions), slices.Clone(v.Notices)
	v.Messages = slices.Clone(v.Messages)
	for i := range v.Messages {
		v.Messages[i].Content = slices.Clone(v.Messages[i].Content)
	}
	return v
}
