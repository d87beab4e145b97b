package frames

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract validates frames with methods.json.
type contract struct {
	root     map[string]any
	compiler *jsonschema.Compiler
}

func openContract(path string) (*contract, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	c := &contract{root: value.(map[string]any), compiler: jsonschema.NewCompiler()}
	return c, c.compiler.AddResource("contract.json", value)
}

// check validates a value. A place that the contract does not have is no mistake: extensions stand beside it.
func (c *contract) check(group, name, part string, value any) error {
	if c == nil || member(c.root, group, name) == nil {
		return nil
	}
	pointer := group + "/" + name
	if part != "" {
		pointer += "/" + part
	}
	schema, err := c.compiler.Compile("contract.json#/" + pointer)
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	again, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := schema.Validate(again); err != nil {
		return fmt.Errorf("%s: %w", pointer, err)
	}
	return nil
}

func (c *contract) checkMethod(method, part string, value any) error {
	if err := c.check("methods", method, part, value); err != nil {
		return err
	}
	return c.check("olderMethods", method, part, value)
}

func (p *player) checkSent(frame any) error {
	if list, ok := frame.([]any); ok {
		for _, item := range list {
			if err := p.checkSent(item); err != nil {
				return err
			}
		}
		return nil
	}
	method, _ := member(frame, "method").(string)
	params := member(frame, "params")
	if params == nil {
		params = map[string]any{}
	}
	return p.contract.checkMethod(method, "params", params)
}

func (p *player) checkAnswer(s step, got any) error {
	method := s.Of
	if method == "" {
		method = p.methods[fmt.Sprint(s.Conn, " ", member(got, "id"))]
	}
	if object, ok := got.(map[string]any); ok {
		if result, ok := object["result"]; ok {
			return p.contract.checkMethod(method, "result", result)
		}
	}
	return nil
}

func (p *player) checkUpdate(got any) error {
	return p.contract.check("notifications", "subscription.update", "params", member(got, "params"))
}

func (p *player) checkDefinition(name string, value any) error {
	return p.contract.check("definitions", name, "", value)
}
