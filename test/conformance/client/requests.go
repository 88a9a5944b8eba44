package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// managerConfig returns a configuration under which every request of a server is answered.
func (c *client) managerConfig() supervisor.Config {
	return supervisor.Config{
		AuthProvider: c.newAuthorizer,
		// A person who presses return: the form is accepted as it stands, with its defaults.
		Elicit: func(ctx context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			fmt.Printf("%s asks: %s\n", r.Server, messages.Line(r.Message, 200))
			if err := c.callMeanwhile(ctx); err != nil {
				fmt.Println("another call at the same time:", err)
			}
			if r.Mode != messages.ElicitForm {
				return supervisor.ElicitResult{Action: messages.ElicitAccept}, nil
			}
			content, err := supervisor.FillDefaults(r, nil)
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: content}, err
		},
		Sample: func(context.Context, supervisor.SampleRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"role":"assistant","model":"none","content":{"type":"text","text":"yes"}}`), nil
		},
		Roots: func(context.Context, string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///tmp", Name: "tmp"}}, nil
		},
	}
}

// unrelatedTool is the tool that is called while another one waits for an answer.
const unrelatedTool = "test_mrtr_unrelated"

// callMeanwhile calls another tool of the server while one of its calls waits for a person.
func (c *client) callMeanwhile(ctx context.Context) error {
	if _, ok := c.Tools().LookupTool(server, unrelatedTool); !ok {
		return nil
	}
	if err := c.callTool(ctx, unrelatedTool, nil); err != nil {
		return err
	}
	c.parallel.Add(1)
	return nil
}

// callWithQuestions calls every tool of a server some of whose tools ask for input. Each question is answered while another call is
// under way.
func (c *client) callWithQuestions(ctx context.Context) error {
	if err := c.callAll(ctx); err != nil {
		return err
	}
	if c.parallel.Load() == 0 {
		return errors.New("no tool asked for anything")
	}
	return nil
}

// useAll uses everything that a server offers once: tools, resources and prompts.
func (c *client) useAll(ctx context.Context) error {
	if err := c.callAll(ctx); err != nil {
		return err
	}
	resources, err := c.Resources(ctx, server)
	if err != nil {
		return err
	}
	for _, r := range resources {
		if _, err := c.ReadServerResource(ctx, server, r.URI); err != nil {
			return err
		}
	}
	if _, err := c.ResourceTemplates(ctx, server); err != nil {
		return err
	}
	prompts, err := c.Prompts(ctx, server)
	if err != nil {
		return err
	}
	for _, p := range prompts {
		if _, err := c.GetPrompt(ctx, p.Qualified, nil); err != nil {
			return err
		}
	}
	if len(resources) == 0 || len(prompts) == 0 {
		return errors.New("the server offers no resource, or no prompt")
	}
	return nil
}
