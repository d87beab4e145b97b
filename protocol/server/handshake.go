package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// Handshake is the state of one connection's initialize: who the front end is, once it is known. It is used by one goroutine.
type Handshake struct {
	RightToken   func(token string) bool // must take the same time for every token
	ServerID     string
	Capabilities []string
	Random       io.Reader

	host *HostIdentity
}

// Host is nil before the first initialize that succeeded.
func (h *Handshake) Host() *HostIdentity { return h.host }

// Initialize checks schema, token, version and host key, in this order, and answers as version 1 says. Repeating it with the same data gives
// the same answer; a different host key is permission_required.
func (h *Handshake) Initialize(raw jsontext.Value) (protocol.InitializeResult, error) {
	decoded, err := protocol.Initialize.DecodeParams(raw)
	if err != nil {
		return protocol.InitializeResult{}, badParams("initialize", err)
	}
	params := decoded.(protocol.InitializeParams)
	if !h.RightToken(params.Token) {
		return protocol.InitializeResult{}, protocol.NewFault(protocol.NumberUnauthorised, "The token is wrong")
	}
	if !slices.Contains(params.Versions, protocol.Version) {
		fault := protocol.NewFault(protocol.NumberVersion, "No common protocol version: this backend speaks version %d", protocol.Version)
		fault.Data = fmt.Appendf(nil, `{"supported":[%d]}`, protocol.Version)
		return protocol.InitializeResult{}, fault
	}
	if err := h.identify(params.HostKey); err != nil {
		return protocol.InitializeResult{}, err
	}
	return protocol.InitializeResult{
		Version:      protocol.Version,
		ServerID:     protocol.ID(h.ServerID),
		Capabilities: h.Capabilities,
		HostKey:      string(h.host.Key),
	}, nil
}

func (h *Handshake) identify(key protocol.HostKey) error {
	switch {
	case h.host != nil && (key == "" || key == h.host.Key):
		return nil
	case h.host != nil:
		return protocol.Errorf(protocol.CodePermissionRequired, "This connection belongs to another host; open a new one to be somebody else")
	case key == "":
		var secret [32]byte // 64 hexadecimal digits, as version 1 fixes them
		if _, err := io.ReadFull(h.Random, secret[:]); err != nil {
			return fmt.Errorf("make host key: %w", err)
		}
		key = protocol.HostKey(hex.EncodeToString(secret[:]))
	}
	h.host = &HostIdentity{ID: hostID(key), Key: key}
	return nil
}

// hostID names a host without giving its key away: 128 bits of a digest cannot be reversed or hit by chance.
func hostID(key protocol.HostKey) protocol.ID {
	digest := sha256.Sum256([]byte(key))
	return protocol.ID(hex.EncodeToString(digest[:16]))
}

func badParams(method string, err error) error {
	return protocol.NewFault(protocol.NumberInvalidParams, "Invalid params: %s: %v", method, err)
}
