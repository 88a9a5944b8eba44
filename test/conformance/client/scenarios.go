package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
)

// client is the program while it plays a scenario.
type client struct {
	*supervisor.Manager
	scenario string
	input    scenarioInput
	auth     transports.Authorizer
	// parallel counts the calls that were made while another one waited for an answer.
	parallel atomic.Int32
}

// playScenario does what the scenario wants done with a server that is connected.
func (c *client) playScenario(ctx context.Context) error {
	act, ok := map[string]func(context.Context) error{
		"initialize":                          c.listTools,
		"request-metadata":                    c.listTools,
		"tools_call":                          c.callAdd,
		"elicitation-sep1034-client-defaults": c.callAll,
		"sse-retry":                           c.callAll,
		"sep-2322-client-request-state":       c.callWithQuestions,
		"http-standard-headers":               c.useAll,
		"http-custom-headers":                 c.callGiven,
		"http-invalid-tool-headers":           c.callAll,
		"json-schema-ref-no-deref":            c.callUnserved,
		"json-schema-2020-12-preservation":    c.echoSchema,
	}[c.scenario]
	if !ok {
		act = c.callAll // the scenarios of authorization: whatever was needed to get here is what they look at
	}
	return act(ctx)
}

// listTools only lists what there is.
func (c *client) listTools(ctx context.Context) error {
	if err := c.Refresh(ctx, server); err != nil {
		return err
	}
	for e := range c.Tools().All() {
		fmt.Println("tool", e.Name)
	}
	return nil
}

// callAdd asks the server for a sum.
func (c *client) callAdd(ctx context.Context) error {
	return c.callTool(ctx, "add_numbers", json.RawMessage(`{"a":5,"b":3}`))
}

// callAll calls every tool that is offered, with arguments that its schema asks for.
func (c *client) callAll(ctx context.Context) error {
	tools, err := c.ToolsOf(ctx, server)
	if err != nil {
		return err
	}
	if len(tools) == 0 {
		return errors.New("the server offers no tool")
	}
	for _, e := range tools {
		if err := c.callTool(ctx, e.Tool.Name, minimalArgs(e.Tool.InputSchema)); err != nil {
			return err
		}
	}
	return nil
}

// callUnserved calls the tools of a server that lists them and refuses every call.
func (c *client) callUnserved(ctx context.Context) error {
	if err := c.callAll(ctx); !errors.Is(err, supervisor.ErrRejected) {
		return fmt.Errorf("a call of a tool that the server does not serve: %w", err)
	}
	return nil
}

// callGiven calls the tools that the scenario names, as it wants them called.
func (c *client) callGiven(ctx context.Context) error {
	for _, call := range c.input.ToolCalls {
		if err := c.callTool(ctx, call.Name, call.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema gives a tool's schema back to the server, as it was received.
func (c *client) echoSchema(ctx context.Context) error {
	focal, ok := c.Tools().LookupTool(server, "json_schema_2020_12_tool")
	if !ok {
		return errors.New("the tool whose schema is to be echoed is not offered")
	}
	return c.callTool(ctx, "json_schema_echo", map[string]json.RawMessage{"schema": focal.Tool.InputSchema})
}

// callTool runs a tool and prints its answer.
func (c *client) callTool(ctx context.Context, tool string, args any) error {
	res, err := c.CallServerTool(ctx, server, tool, args)
	if err != nil {
		return err
	}
	if res.IsError {
		return fmt.Errorf("%s failed: %s", tool, res.Text())
	}
	fmt.Println(tool, "says", res.Text())
	return nil
}

// minimalArgs makes the simplest arguments that have what a schema requires.
func minimalArgs(schema json.RawMessage) map[string]any {
	var s struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	args := map[string]any{}
	if json.Unmarshal(schema, &s) != nil {
		return args // a schema of a form that is not read here: the server will say what is missing
	}
	for name, p := range s.Properties {
		if !slices.Contains(s.Required, name) {
			continue
		}
		switch p.Type {
		case "number", "integer":
			args[name] = 1
		case "boolean":
			args[name] = true
		case "object":
			args[name] = map[string]any{}
		case "array":
			args[name] = []any{}
		case "null":
			args[name] = nil
		default:
			args[name] = "text"
		}
	}
	return args
}
