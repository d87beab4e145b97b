package catalog

import (
	"path"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/cas"
)

// Role says what an item is for, and so which removals are legal.
type Role string

// Roles.
const (
	Document Role = "document" // kept and edited in the space
	Material Role = "material" // a source
)

// State says whether an item is in use.
type State string

// States. Items of the last two are tombstones.
const (
	Active   State = "active"
	Deleted  State = "deleted"
	Detached State = "detached"
)

// Kinds of a Location and of an Origin.
const (
	Relative = "relative"
	External = "external"
	URL      = "url"
)

// Location is a place on disk: a slash-separated path below the space ("." is the space), or an absolute one outside of it.
type Location struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
}

// Here is the location of a path below the space.
func Here(path string) Location { return Location{Relative, path} }

// Target names an item by its id, or a file by its place.
type Target struct {
	ID       string    `json:"id,omitzero"`
	Location *Location `json:"location,omitzero"`
}

// Member is one part of a composition.
type Member struct {
	Target Target `json:"target"`
	Name   string `json:"name,omitzero"`
}

// Resource names immutable bytes in the store.
type Resource struct {
	ID        string `json:"id"`
	MediaType string `json:"mediaType"`
}

// Origin is where an item came from: a place on disk or a URL. RetrievedAt is in milliseconds since 1970, 0 when unknown.
type Origin struct {
	Kind        string `json:"kind"`
	Path        string `json:"path,omitzero"`
	URL         string `json:"url,omitzero"`
	RetrievedAt int64  `json:"retrievedAt,omitzero"`
}

// Item is the record of a document or material.
type Item struct {
	ID        string     `json:"id"`
	Location  Location   `json:"location"`
	Role      Role       `json:"role"`
	MediaType string     `json:"mediaType"`
	State     State      `json:"state"`
	Members   []Member   `json:"members"`
	Resources []Resource `json:"resources"`
	Origin    *Origin    `json:"origin,omitzero"`
}

// Revision is the digest of the canonical JSON of the record (RFC 8785), hexadecimal.
func (i *Item) Revision() string { return Digest("item", i) }

// Same reports whether two records, of which either may be nil, say the same.
func (i *Item) Same(other *Item) bool {
	if i == nil || other == nil {
		return i == other
	}
	return i == other || i.Revision() == other.Revision()
}

// Digest is the digest of v as canonical JSON (RFC 8785), in a name space of its own. v must encode.
func Digest(name string, v any) string {
	data, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true)) // what is no text is refused by whoever uses it
	if err == nil {
		err = (*jsontext.Value)(&data).Canonicalize()
	}
	if err != nil {
		panic("catalog: digest of " + name + ": " + err.Error())
	}
	return cas.Sum(append([]byte(name+"\x00"), data...)).String()
}

// mediaTypes by the extension of a file name, lower case.
var mediaTypes = map[string]string{
	".md": "text/markdown", ".txt": "text/plain", ".json": "application/json", ".html": "text/html", ".htm": "text/html", ".css": "text/css",
	".js": "text/javascript", ".ts": "text/plain", ".tsx": "text/plain", ".jsx": "text/plain", ".py": "text/plain", ".rs": "text/plain",
	".c": "text/plain", ".h": "text/plain", ".cpp": "text/plain", ".v": "text/plain", ".sv": "text/plain", ".go": "text/plain",
	".csv": "text/csv", ".svg": "image/svg+xml", ".pdf": "application/pdf", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
	".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp",
}

// MediaType is the media type of a file by its name.
func MediaType(name string) string {
	if t, ok := mediaTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return "application/octet-stream"
}
