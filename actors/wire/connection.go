package wire

import (
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/protocol"
)

// Connection converts a definition. Its revision is fixed: these connections are never changed, only made.
func Connection(d connection.Definition) protocol.ModelConnection {
	c := protocol.ModelConnection{
		ID: protocol.ID(d.ID), Name: d.Name, Provider: string(d.Provider), BaseURL: d.BaseURL, AuthMode: protocol.AuthCredentials,
		Revision: "1", AuthID: protocol.ID(d.ID), Authentication: protocol.Authentication{Configured: true, Type: protocol.AuthAPIKey},
	}
	if d.Keyless {
		c.AuthMode, c.Authentication = protocol.AuthNone, protocol.Authentication{Configured: true}
	}
	return c
}

// Catalog lists the models of a connection that are known without asking its server: only the builtin one has any. A lent
// connection takes whatever model its server has.
func Catalog(d connection.Definition) protocol.ModelCatalog {
	out := protocol.ModelCatalog{Connection: Connection(d), Models: []protocol.CatalogModel{}}
	if d.Provider == connection.Builtin {
		out.Models = append(out.Models, protocol.CatalogModel{
			ID: connection.OfflineModel, Name: "Offline: finds and quotes passages, no language model", API: d.API,
			Input: []protocol.Modality{protocol.ModalityText},
			// It reads what it is given and answers in a page; the numbers only keep front ends from warning.
			ContextWindow: 1_000_000, MaxTokens: 8192,
			ThinkingLevels: []protocol.ThinkingLevel{protocol.ThinkingOff},
		})
	}
	return out
}

// Binding converts a bound connection.
func Binding(b connection.Bound) protocol.ModelBinding {
	return protocol.ModelBinding{Connection: Connection(b.Definition), ModelID: b.Model}
}

// Usage converts token counts.
func Usage(u llm.Usage) *protocol.Usage {
	return &protocol.Usage{Input: float64(u.Input), Output: float64(u.Output), CacheRead: float64(u.CacheRead),
		CacheWrite: float64(u.CacheWrite), TotalTokens: float64(u.TotalTokens)}
}
