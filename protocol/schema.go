package protocol

import (
	"encoding/json"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// document is /protocol.json.
type document struct {
	Schema      string                        `json:"$schema"`
	Version     int                           `json:"version"`
	Methods     map[string]methodSchema       `json:"methods"`
	Delivery    *jsonschema.Schema            `json:"delivery"`
	Definitions map[string]*jsonschema.Schema `json:"$defs"`
}

type methodSchema struct {
	Params *jsonschema.Schema `json:"params"`
	Result *jsonschema.Schema `json:"result"`
}

// Schema returns the published description as JSON: {version, methods: {name: {params, result}}, delivery, $defs}, schemas in JSON
// Schema 2020-12. It is made at the first call; callers must not change it.
var Schema = sync.OnceValues(func() ([]byte, error) {
	d := document{
		Schema:      "https://json-schema.org/draft/2020-12/schema",
		Version:     Version,
		Methods:     make(map[string]methodSchema, len(table)),
		Definitions: map[string]*jsonschema.Schema{},
	}
	for _, m := range table {
		d.Methods[m.Name] = methodSchema{Params: m.params().Schema(d.Definitions), Result: m.result().Schema(d.Definitions)}
	}
	d.Delivery = shape.For[Delivery]().Schema(d.Definitions)
	return json.Marshal(d)
})
