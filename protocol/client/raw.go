package client

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// Raw makes a call whose params and result are JSON, for programs that pass them through. Params are held against the method's
// type before they go out. Failures: those of Call.
func Raw(ctx context.Context, c *Client, method *protocol.Method, params jsontext.Value) (jsontext.Value, error) {
	decoded, err := method.DecodeParams(params)
	if err != nil {
		return nil, protocol.NewFault(protocol.NumberInvalidParams, "Invalid params: %s: %v", method.Name, err)
	}
	raw, err := c.call(ctx, method.Name, decoded)
	if err != nil {
		return nil, err
	}
	if err := method.CheckResult(raw); err != nil {
		return nil, badResult(method.Name, err)
	}
	return raw, nil
}
