package main

import (
	"context"
	"fmt"

	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

type modelCommands struct {
	List modelList `cmd:"" help:"${model_list}"`
}

type modelList struct {
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// modelRow is one model that can be named with --model as connection/model.
type modelRow struct {
	Connection    protocol.ID              `json:"connection"`
	Model         string                   `json:"model"`
	Name          string                   `json:"name"`
	Provider      string                   `json:"provider"`
	Input         []protocol.Modality      `json:"input"`
	ContextWindow protocol.Int             `json:"contextWindow"`
	Cost          protocol.ModelCost       `json:"cost"`
	Thinking      []protocol.ThinkingLevel `json:"thinkingLevels"`
}

// providerRow is a provider whose models can be named without being listed. Usable says that nothing is missing for it here.
type providerRow struct {
	Provider string `json:"provider"`
	Variable string `json:"variable"`
	Usable   bool   `json:"usable"`
}

// Run lists what the backend knows, and which providers the environment has keys for. It asks nothing over the network.
func (c *modelList) Run(ctx context.Context, t *terminal) error {
	cl, err := t.attach(ctx)
	if err != nil {
		return err
	}
	defer leave(cl)
	connections, err := client.Call(ctx, cl, protocol.ConnectionList, protocol.Empty{})
	if err != nil {
		return err
	}
	rows := []modelRow{}
	for _, m := range connections {
		catalog, err := client.Call(ctx, cl, protocol.ModelList, protocol.ModelListParams{ConnectionID: m.ID})
		if err != nil {
			return err
		}
		for _, model := range catalog.Models {
			rows = append(rows, modelRow{m.ID, model.ID, model.Name, m.Provider, model.Input, model.ContextWindow, model.Cost, model.ThinkingLevels})
		}
	}
	if c.Output == outputJSON {
		printJSON(t.out, map[string]any{"models": rows, "providers": t.providers()})
		return nil
	}
	for _, r := range rows {
		name := r.Name
		if r.Provider == string(connection.Builtin) {
			name = t.text(messages.OfflineMark)
		}
		fmt.Fprintf(t.out, "%s/%s  %s\n", r.Connection, r.Model, name)
	}
	fmt.Fprintln(t.out, "\n"+t.text(messages.HintModels))
	for _, line := range t.modelHints() {
		fmt.Fprintln(t.out, line)
	}
	return nil
}

func (t *terminal) providers() []providerRow {
	var out []providerRow
	for _, e := range environments {
		row := providerRow{string(e.provider), e.key, e.key == "" || t.getenv(e.key) != ""}
		if e.key == "" {
			row.Variable = e.endpoint
		}
		out = append(out, row)
	}
	return out
}
