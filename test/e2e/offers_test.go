package e2e_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

// typeX is a person who types an x into every field of a form.
func typeX(_ context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(r.Schema, &form); err != nil {
		return supervisor.ElicitResult{}, err
	}
	content := object{}
	for name := range form.Properties {
		content[name] = "x"
	}
	raw, err := json.Marshal(content)
	return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: raw}, err
}

// What real servers offer beside tools, of each era, is listed, read, filled, completed and watched.
func TestResourcesPromptsCompletionAndSubscriptionsOfRealServers(t *testing.T) {
	checkLeaks(t)
	command, args := peers.NPM(t).Command(peers.Everything)
	m := startManager(t, supervisor.Config{Elicit: typeX, Servers: map[string]supervisor.Spec{
		"legacy": {Command: command, Args: args, LogLevel: "debug"},
		"modern": {Command: peers.Go(t)},
	}})
	awaitConnected(t, m, "legacy", "modern")
	for name, era := range map[string]messages.Era{"legacy": messages.EraLegacy, "modern": messages.EraModern} {
		t.Run(name, func(t *testing.T) {
			if st := statusOf(t, m, name); st.Era != era {
				t.Errorf("era %q, %s", st.Era, st.ProtocolVersion)
			}
			ctx := testContext(t, bound)
			resources, err := m.Resources(ctx, name)
			if err != nil || len(resources) == 0 {
				t.Fatalf("%v, %v", resources, err)
			}
			res, err := m.ReadResource(ctx, resources[0].URI)
			if err != nil || res.Server != name || len(res.Contents()) == 0 {
				t.Errorf("%+v, %v", res, err)
			}
			templates, err := m.ResourceTemplates(ctx, name)
			if err != nil || len(templates) == 0 {
				t.Errorf("%v, %v", templates, err)
			}
			prompts, err := m.Prompts(ctx, name)
			if err != nil || len(prompts) == 0 {
				t.Fatalf("%v, %v", prompts, err)
			}
			for _, p := range prompts {
				t.Log(p.Qualified, p.Arguments)
				if len(p.Arguments) > 0 {
					continue
				}
				filled, err := m.GetPrompt(ctx, p.Qualified, nil)
				if err != nil || filled.Server != name || len(filled.Messages()) == 0 {
					t.Errorf("%s: %+v, %v", p.Qualified, filled, err)
				}
			}
			for _, p := range prompts {
				if len(p.Arguments) == 0 {
					continue
				}
				c, err := m.Complete(ctx, name, supervisor.CompleteRequest{Prompt: p.Name, Argument: p.Arguments[0].Name, Value: "E"})
				t.Logf("%s of %s: %v, %v", p.Arguments[0].Name, p.Name, c, err)
				if err != nil && messages.OutcomeOf(err) != messages.OutcomeRejected {
					t.Error(err)
				}
			}
			if err := m.SubscribeResource(ctx, name, resources[0].URI); err != nil {
				t.Error(err)
			}
			if err := m.UnsubscribeResource(ctx, name, resources[0].URI); err != nil {
				t.Error(err)
			}
			if took, err := m.Ping(ctx, name); err != nil || took <= 0 {
				t.Errorf("%v, %v", took, err)
			}
		})
	}
}
