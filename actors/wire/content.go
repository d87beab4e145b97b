package wire

import (
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
)

// Location converts a place.
func Location(l catalog.Location) protocol.FileLocation {
	return protocol.FileLocation{Kind: l.Kind, Path: l.Path}
}

// DomainLocation is Location backwards.
func DomainLocation(l protocol.FileLocation) catalog.Location {
	return catalog.Location{Kind: l.Kind, Path: l.Path}
}

// Target is how an item, or the file at a place when id is "", is named.
func Target(space protocol.ID, id string, at catalog.Location) protocol.ContentTarget {
	if id != "" {
		return protocol.ContentTarget{Kind: "content", Ref: &protocol.ContentRef{SpaceID: space, ID: protocol.ID(id)}}
	}
	l := Location(at)
	return protocol.ContentTarget{Kind: "file", SpaceID: space, Location: &l}
}

// DomainTarget is Target backwards, with the space that the target names.
func DomainTarget(t protocol.ContentTarget) (protocol.ID, content.Target) {
	if t.Ref != nil {
		return t.Ref.SpaceID, content.Target{ID: string(t.Ref.ID)}
	}
	return t.SpaceID, content.Target{Path: t.Location.Path, External: t.Location.Kind == catalog.External}
}

// Members converts the parts of a composition.
func Members(space protocol.ID, list []catalog.Member) []protocol.ContentMember {
	out := []protocol.ContentMember{}
	for _, m := range list {
		at := catalog.Location{}
		if m.Target.Location != nil {
			at = *m.Target.Location
		}
		out = append(out, protocol.ContentMember{Target: Target(space, m.Target.ID, at), Name: m.Name})
	}
	return out
}

// DomainMembers is Members backwards. A part of another space is left to be refused: it names no content of this one.
func DomainMembers(list []protocol.ContentMember) []catalog.Member {
	out := []catalog.Member{}
	for _, m := range list {
		_, t := DomainTarget(m.Target)
		target := catalog.Target{ID: t.ID}
		if t.ID == "" {
			l := DomainLocation(*m.Target.Location)
			target.Location = &l
		}
		out = append(out, catalog.Member{Target: target, Name: m.Name})
	}
	return out
}

// Resources converts references to kept bytes.
func Resources(space protocol.ID, list []catalog.Resource) []protocol.ResourceRef {
	out := []protocol.ResourceRef{}
	for _, r := range list {
		out = append(out, protocol.ResourceRef{SpaceID: space, ID: protocol.ID(r.ID), MediaType: r.MediaType})
	}
	return out
}

// DomainResources is Resources backwards.
func DomainResources(list []protocol.ResourceRef) []catalog.Resource {
	out := []catalog.Resource{}
	for _, r := range list {
		out = append(out, catalog.Resource{ID: string(r.ID), MediaType: r.MediaType})
	}
	return out
}

// Origin converts where a content came from.
func Origin(o *catalog.Origin) *protocol.ContentOrigin {
	if o == nil {
		return nil
	}
	return &protocol.ContentOrigin{Kind: o.Kind, Path: o.Path, URL: o.URL, RetrievedAt: protocol.Millis(o.RetrievedAt)}
}

// DomainOrigin is Origin backwards.
func DomainOrigin(o *protocol.ContentOrigin) *catalog.Origin {
	if o == nil {
		return nil
	}
	return &catalog.Origin{Kind: o.Kind, Path: o.Path, URL: o.URL, RetrievedAt: int64(o.RetrievedAt)}
}

// ContentInfo converts what there is to know of a content.
func ContentInfo(space protocol.ID, i content.Info) protocol.ContentInfo {
	out := protocol.ContentInfo{
		Target: Target(space, i.ID, i.Location), Location: Location(i.Location), Role: protocol.ContentRole(i.Role), MediaType: i.MediaType,
		Revision: revision(i.Revision), Status: protocol.ContentStatus(i.Status), FileType: protocol.FileType(i.FileType),
		Members: Members(space, i.Members), Resources: Resources(space, i.Resources), Origin: Origin(i.Origin),
	}
	if i.ID != "" {
		out.Ref = &protocol.ContentRef{SpaceID: space, ID: protocol.ID(i.ID)}
	}
	if i.BodyRead {
		out.BodyRevision = protocol.Nullable[protocol.Revision]{Present: true, Value: revision(i.Body)}
	}
	if i.FileType == "file" {
		size := float64(i.Size)
		out.Size = &size
	}
	return out
}

func revision(r *string) *protocol.Revision {
	if r == nil {
		return nil
	}
	out := protocol.Revision(*r)
	return &out
}

// ContentChangeResult converts the answer to an operation.
func ContentChangeResult(space protocol.ID, r content.Result) protocol.ContentChangeResult {
	out := protocol.ContentChangeResult{OperationID: protocol.ID(r.OperationID), Changes: []protocol.ContentChange{}, Contents: []protocol.ContentInfo{}}
	for _, c := range r.Changes {
		out.Changes = append(out.Changes, protocol.ContentChange{Path: c.Path, Before: revision(c.Before), After: revision(c.After)})
	}
	for _, i := range r.Contents {
		out.Contents = append(out.Contents, ContentInfo(space, i))
	}
	return out
}

// Operation converts the record of an operation.
func Operation(space protocol.ID, o content.Operation) protocol.ContentOperation {
	out := protocol.ContentOperation{OperationID: protocol.ID(o.ID), Status: protocol.OperationStatus(o.Status), CreatedAt: protocol.Millis(o.Time),
		Error: o.Error, Conflicts: o.Conflicts}
	if out.Conflicts == nil {
		out.Conflicts = []string{}
	}
	if o.Result != nil {
		r := ContentChangeResult(space, *o.Result)
		out.Result = &r
	}
	return out
}

// OperationSummary converts an operation of a list.
func OperationSummary(o content.Operation) protocol.OperationSummary {
	return protocol.OperationSummary{OperationID: protocol.ID(o.ID), Status: protocol.OperationStatus(o.Status), CreatedAt: protocol.Millis(o.Time),
		Actor: protocol.Actor(o.By.Actor), Cause: o.Method, SessionID: protocol.ID(o.By.Session), RunID: protocol.ID(o.By.Run),
		Undoes: IDs(o.Undoes), UndoneBy: protocol.ID(o.UndoneBy), Paths: o.Paths}
}

// IDs converts a list of ids; nil stays nil.
func IDs(list []string) []protocol.ID {
	var out []protocol.ID
	for _, id := range list {
		out = append(out, protocol.ID(id))
	}
	return out
}

// History converts the revisions of a document.
func History(h content.History) protocol.ContentHistoryResult {
	out := protocol.ContentHistoryResult{Document: protocol.HistoryDocument{ID: protocol.ID(h.Item), Path: h.Path}, Revisions: []protocol.ContentRevision{}, Cursor: h.Cursor}
	for _, r := range h.Revisions {
		v := protocol.ContentRevision{Revision: revision(r.Revision), Time: protocol.Millis(r.Time), Actor: protocol.Actor(r.By.Actor), Cause: r.Cause,
			OperationID: protocol.ID(r.Operation), SessionID: protocol.ID(r.By.Session), RunID: protocol.ID(r.By.Run), Path: r.Path, Available: r.Available}
		if r.Revision != nil {
			size := protocol.Int(r.Size)
			v.Size = &size
		}
		out.Revisions = append(out.Revisions, v)
	}
	return out
}

// Report converts what wants attention in a space.
func Report(space protocol.ID, r content.Report) protocol.ContentReport {
	out := protocol.ContentReport{Unresolved: []protocol.UnresolvedOperation{}, Outside: []protocol.OutsideChange{}, Missing: []protocol.MissingContent{},
		ConflictCopies: []protocol.ConflictCopy{}, Twins: r.Twins}
	for _, u := range r.Unresolved {
		out.Unresolved = append(out.Unresolved, protocol.UnresolvedOperation{OperationID: protocol.ID(u.Operation), Status: protocol.OperationStatus(u.Status), Conflicts: u.Conflicts})
	}
	for _, o := range r.Outside {
		out.Outside = append(out.Outside, protocol.OutsideChange{Path: o.Path, Revision: revision(o.Revision), Time: protocol.Millis(o.Time)})
	}
	for _, m := range r.Missing {
		out.Missing = append(out.Missing, protocol.MissingContent{Ref: protocol.ContentRef{SpaceID: space, ID: protocol.ID(m.Item)}, Path: m.Path, Proposals: m.Proposals})
	}
	for _, c := range r.ConflictCopies {
		out.ConflictCopies = append(out.ConflictCopies, protocol.ConflictCopy{Path: c.Path, Of: c.Of})
	}
	return out
}

// Comparison converts a difference of two revisions.
func Comparison(c content.Comparison) protocol.ContentDiffResult {
	return protocol.ContentDiffResult{From: revision(c.From), To: revision(c.To), Unified: c.Unified}
}
