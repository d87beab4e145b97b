package protocol

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// Version is the version of the protocol that this package describes.
const Version = 1

// Gate says in which states of the backend a method is answered.
type Gate string

// Gates.
const (
	GateNone      Gate = "none"      // in every state while the socket is open
	GateOpen      Gate = "open"      // refused with closed only once the final teardown began
	GateRunning   Gate = "running"   // refused with shutting_down unless the backend is running
	GateAdmission Gate = "admission" // a known request id is answered until teardown, a new one needs a running backend
)

// Method is one row of the method table.
type Method struct {
	Name       string
	Group      string
	Gate       Gate
	Idempotent bool
	Errors     []Code
	Extension  bool // served beside the version-1 table

	params, result func() *shape.Shape
	decode         func(jsontext.Value) (any, error)
}

// DecodeParams reads params strictly into the method's Go type (a value, not a pointer). Absent params count as {}.
func (m *Method) DecodeParams(params jsontext.Value) (any, error) {
	if len(params) == 0 {
		params = jsontext.Value("{}")
	}
	return m.decode(params)
}

// CheckResult holds an encoded result against the method's result type.
func (m *Method) CheckResult(result jsontext.Value) error { return m.result().Check(result) }

// Call is a method together with its Go types: params P, result R.
type Call[P, R any] struct{ Method }

func define[P, R any](m Method) *Call[P, R] {
	m.params, m.result = shape.For[P], shape.For[R]
	m.decode = func(text jsontext.Value) (any, error) { return Decode[P](text) }
	call := &Call[P, R]{m}
	table = append(table, &call.Method)
	return call
}

var table []*Method

// Methods lists the methods in the order of their definition. The list is read-only.
func Methods() []*Method { return table }

var byName = sync.OnceValue(func() map[string]*Method {
	names := make(map[string]*Method, len(table))
	for _, m := range table {
		names[m.Name] = m
	}
	return names
})

// Lookup finds a method by its exact name.
func Lookup(name string) (*Method, bool) {
	m, ok := byName()[name]
	return m, ok
}

// Capabilities lists what initialize tells a front end that a backend of version 1 can do.
func Capabilities() []string {
	return []string{
		"sessions", "runs", "subscriptions", "resources", "interactions", "shutdown", "content",
		"prompt-settings", "model-connections", "resource-holds", "space-snapshots",
	}
}
