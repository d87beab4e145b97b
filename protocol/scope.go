package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// Scope is what a subscriber watches: the application (zero value), a space or a session.
type Scope struct {
	_         struct{} `shape:"union=application|space|session"`
	SpaceID   ID       `json:"spaceId" shape:"in=space|session"`
	SessionID ID       `json:"sessionId" shape:"in=session"`
}

// MarshalJSONTo writes the members that are set; a session without its space is an error.
func (s Scope) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &s) }

// Validate reports the first departure from the wire contract.
func (s Scope) Validate() error { return validate(s) }

// Contains says whether everything in other is also in s: the application contains all, a space its sessions, a session itself.
func (s Scope) Contains(other Scope) bool {
	if s.SpaceID == "" {
		return true
	}
	return s.SpaceID == other.SpaceID && (s.SessionID == "" || s.SessionID == other.SessionID)
}

// sees says whether something of the space as a whole concerns s: the application and every scope inside that space.
func (s Scope) sees(space ID) bool { return s.SpaceID == "" || s.SpaceID == space }

// owns says whether s is the application or the space itself, not a session.
func (s Scope) owns(space ID) bool { return s.SessionID == "" && s.sees(space) }

// Relevant says whether a subscriber of the scope gets the change. A change without its own members concerns nobody.
func Relevant(scope Scope, c Change) bool {
	switch c.Type {
	case ChangeLifecycle, ChangeConnection:
		return true
	case ChangeContent:
		return scope.sees(c.SpaceID)
	case ChangeSessionRemoved, ChangeInteraction, ChangeNotice:
		return scope.Contains(Scope{SpaceID: c.SpaceID, SessionID: c.SessionID})
	case ChangeMessage, ChangeDelta, ChangeTool:
		return scope.SessionID != "" && scope.Contains(Scope{SpaceID: c.SpaceID, SessionID: c.SessionID})
	case ChangeExecutionOutput:
		return c.Source != nil && seesExecution(scope, c.SpaceID, *c.Source)
	}
	return relevantRecord(scope, c)
}

// relevantRecord decides for the changes that carry a whole record.
func relevantRecord(scope Scope, c Change) bool {
	switch {
	case c.Type == ChangeSpace && c.Space != nil:
		return scope.sees(c.Space.ID)
	case c.Type == ChangeSession && c.Session != nil:
		return scope.Contains(c.Session.Key().Scope())
	case c.Type == ChangeRun && c.Run != nil:
		return scope.Contains(Scope{SpaceID: c.Run.SpaceID, SessionID: c.Run.SessionID})
	case c.Type == ChangeRequest && c.Request != nil:
		return scope.Contains(c.Request.Target.Scope())
	case c.Type == ChangeQueue && c.Queue != nil:
		return scope.Contains(c.Queue.Target.Scope())
	case c.Type == ChangeSettings && c.Scope != nil:
		return relevantSetting(scope, *c.Scope)
	case c.Type == ChangeCapability && c.Event != nil:
		return c.Event.Scope.Kind == "application" || scope.sees(c.Event.Scope.SpaceID)
	case c.Type == ChangeProcessing && c.Processing != nil:
		return scope.owns(c.Processing.SpaceID)
	case c.Type == ChangeExecution && c.Execution != nil:
		return seesExecution(scope, c.Execution.SpaceID, c.Execution.Source)
	}
	return false
}

func relevantSetting(scope Scope, setting SettingScope) bool {
	switch setting.Kind {
	case "application":
		return true
	case "space":
		return scope.sees(setting.SpaceID)
	}
	return scope.Contains(setting.Scope())
}

// seesExecution lets a session see only the commands of its own agent.
func seesExecution(scope Scope, space ID, source Source) bool {
	if scope.owns(space) {
		return true
	}
	return source.Kind == "agent" && scope.Contains(Scope{SpaceID: source.SpaceID, SessionID: source.SessionID})
}
