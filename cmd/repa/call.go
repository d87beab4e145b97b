package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

type callCommand struct {
	Method string `arg:"" help:"${call_method}"`
	Params string `arg:"" optional:"" help:"${call_params}" placeholder:"JSON"`
	Space  string `help:"${call_space}" placeholder:"DIR"`
}

// callError is what a refused call prints.
type callError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Run makes one call and prints its result.
func (c *callCommand) Run(ctx context.Context, t *terminal) error {
	result, err := c.call(ctx, t)
	if err == nil {
		printJSON(t.out, json.RawMessage(result))
		return nil
	}
	var usage *exit
	if errors.As(err, &usage) {
		return err
	}
	printJSON(t.out, map[string]callError{"error": describe(err)})
	return &exit{code: exitFailed}
}

func describe(err error) callError {
	e := callError{Message: err.Error(), Code: "internal"}
	var fault *protocol.Fault
	var domain *protocol.Error
	var own interface{ Code() string }
	switch {
	case errors.As(err, &domain):
		e.Code, e.Message = string(domain.Reason), domain.Message
		if raw, ok := domain.Details.(jsontext.Value); ok {
			e.Details = json.RawMessage(raw)
		}
	case errors.As(err, &fault):
		e.Message = fault.Message
		switch fault.Number {
		case protocol.NumberInvalidParams:
			e.Code = "invalid_params"
		case protocol.NumberUnknownMethod:
			e.Code = "unknown_method"
		}
	case errors.Is(err, client.ErrOutcomeUnknown):
		e.Code = "outcome_unknown"
	case errors.As(err, &own):
		e.Code = own.Code()
	}
	return e
}

func (c *callCommand) call(ctx context.Context, t *terminal) (jsontext.Value, error) {
	params, err := c.params(t)
	if err != nil {
		return nil, err
	}
	method, ok := protocol.Lookup(c.Method)
	if !ok || method == &protocol.Initialize.Method || method.Group == "subscriptions" {
		return nil, &coded{"unknown_method", t.text(messages.CallUnknown, c.Method)}
	}
	var cl *client.Client
	if c.Space != "" {
		var s protocol.Space
		if cl, s, err = t.enterDir(ctx, c.Space); err != nil {
			return nil, err
		}
		params = fillSpace(params, s.ID)
	} else if params, err = t.noSpace(params); err != nil {
		return nil, err
	} else if cl, err = t.attach(ctx); err != nil {
		return nil, err
	}
	defer leave(cl)
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return client.Raw(ctx, cl, method, raw)
}

func (c *callCommand) params(t *terminal) (any, error) {
	text := []byte(c.Params)
	if c.Params == "-" {
		var err error
		if text, err = io.ReadAll(io.LimitReader(t.in, maxStdin)); err != nil {
			return nil, err
		}
	}
	if len(text) == 0 {
		return map[string]any{}, nil
	}
	var params any
	if err := json.Unmarshal(text, &params); err != nil {
		return nil, t.fail(exitUsage, messages.CallBadJSON, err)
	}
	return params, nil
}

// spacePlaceholder stands for the id of the opened space.
const spacePlaceholder = "$space"

// fillSpace replaces the placeholder wherever it is a whole string.
func fillSpace(v any, id protocol.ID) any {
	switch v := v.(type) {
	case string:
		if v == spacePlaceholder {
			return string(id)
		}
	case []any:
		for i := range v {
			v[i] = fillSpace(v[i], id)
		}
	case map[string]any:
		for k := range v {
			v[k] = fillSpace(v[k], id)
		}
	}
	return v
}

// noSpace refuses a placeholder that nothing can fill.
func (t *terminal) noSpace(params any) (any, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	var again any
	if err := json.Unmarshal(raw, &again); err != nil {
		return nil, err
	}
	filled, err := json.Marshal(fillSpace(again, "x"))
	if err != nil {
		return nil, err
	}
	if string(filled) != string(raw) {
		return nil, t.fail(exitUsage, messages.CallNoSpace)
	}
	return params, nil
}
