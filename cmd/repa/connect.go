package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

// environment says under which names a provider's key and endpoint stand in the environment.
type environment struct {
	provider      connection.Provider
	key, endpoint string
}

// environments are the providers that --model can name. A key is used only by a command that names its provider.
var environments = []environment{
	{connection.OpenAI, "OPENAI_API_KEY", "OPENAI_BASE_URL"},
	{connection.Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
	{connection.Google, "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"},
	{connection.Ollama, "", "OLLAMA_HOST"},
}

// defaultOllama is where Ollama listens when nothing else is said.
const defaultOllama = "http://127.0.0.1:11434"

func (e environment) baseURL(getenv func(string) string) string {
	base := getenv(e.endpoint)
	if e.provider != connection.Ollama {
		return base
	}
	if base == "" {
		return defaultOllama
	}
	if !strings.Contains(base, "://") {
		base = "http://" + base // OLLAMA_HOST is usually host:port
	}
	return strings.Replace(base, "://0.0.0.0", "://127.0.0.1", 1)
}

// selectModel turns --model into a selection, lending the key of the environment to the backend when the model needs one.
// Without --model nothing is selected: the backend uses the built-in model.
func (t *terminal) selectModel(ctx context.Context, c *client.Client, name string) (*protocol.RunSelection, error) {
	if name == "" {
		return nil, nil
	}
	provider, model, ok := strings.Cut(name, "/")
	if !ok || provider == "" || model == "" {
		return nil, &coded{protocol.CodeModelNotFound, t.text(messages.ModelForm, name)}
	}
	id := protocol.ID(provider)
	for _, e := range environments {
		if string(e.provider) == provider {
			var err error
			if id, err = t.lend(ctx, c, e); err != nil {
				return nil, err
			}
		}
	}
	if !id.Valid() || (id == protocol.ID(provider) && provider != string(connection.Builtin)) {
		return nil, &coded{protocol.CodeConnectionNotFound, t.text(messages.ModelUnknown, provider)}
	}
	return &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: id, ID: model}}, nil
}

func (t *terminal) lend(ctx context.Context, c *client.Client, e environment) (protocol.ID, error) {
	p := protocol.LendParams{Provider: string(e.provider), BaseURL: e.baseURL(t.getenv)}
	if e.key != "" {
		p.Secret = t.getenv(e.key)
		if p.Secret == "" && p.BaseURL == "" {
			return "", &coded{protocol.CodeAuthRequired, t.text(messages.ModelNoKey, e.provider, e.key)}
		}
	}
	r, err := client.Call(ctx, c, protocol.ConnectionLend, p)
	return r.ConnectionID, err
}

// modelHints says how a language model can be named, and what is missing for it. Nothing is asked over the network.
func (t *terminal) modelHints() []string {
	var out []string
	for _, e := range environments {
		name := fmt.Sprintf("  %s/NAME  ", e.provider)
		switch {
		case e.key == "":
			out = append(out, name+t.text(messages.HintLocal, e.baseURL(t.getenv)))
		case t.getenv(e.key) != "":
			out = append(out, name+t.text(messages.HintKeyThere, e.key))
		default:
			out = append(out, name+t.text(messages.HintKeyAbsent, e.key))
		}
	}
	return out
}
