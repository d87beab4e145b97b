package cas

import (
	"cmp"
	"fmt"
	"strings"
)

// OwnerKind is the kind of thing that holds objects.
type OwnerKind string

// The kinds of owners. A kind consists of lower-case letters.
const (
	OwnerDocument  OwnerKind = "document"
	OwnerSession   OwnerKind = "session"
	OwnerRequest   OwnerKind = "request"
	OwnerOperation OwnerKind = "operation"
	OwnerDisplay   OwnerKind = "display"
	OwnerLease     OwnerKind = "lease"
	// OwnerRecovered holds what nobody was known to hold when Repair found holds in doubt.
	OwnerRecovered OwnerKind = "recovered"
)

// Owner is who holds objects: a document, a session, a lease …
type Owner struct {
	Kind OwnerKind
	ID   string
}

// String returns the text form, kind and id with a colon between.
func (o Owner) String() string { return string(o.Kind) + ":" + o.ID }

// MarshalText implements encoding.TextMarshaler.
func (o Owner) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// maxOwner bounds the text form of an owner: every hold record carries it.
const maxOwner = 1024

func (o Owner) check() error {
	valid := o.Kind != "" && o.ID != "" && len(o.String()) <= maxOwner
	for _, c := range []byte(o.Kind) {
		valid = valid && c >= 'a' && c <= 'z'
	}
	if !valid {
		return fmt.Errorf("owner %q: want a kind of lower-case letters and an id, %d bytes at most", o, maxOwner)
	}
	return nil
}

func ownerOf(text string) Owner {
	kind, id, _ := strings.Cut(text, ":")
	return Owner{OwnerKind(kind), id}
}

func compareOwners(a, b Owner) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}
