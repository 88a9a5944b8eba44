package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// Read a resource and fill a prompt, without saying whose they are.
func ExampleManager_ReadResource() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, serve := library("city")
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"city": serve},
		Servers:   map[string]supervisor.Spec{"city": {Type: supervisor.SDK}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Settled(ctx); err != nil {
		fmt.Println(err)
		return
	}
	res, err := m.ReadResource(ctx, "page://city/7")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Server, res.Contents()[0].Text)
	prompt, err := m.GetPrompt(ctx, "mcp__city__greet", map[string]string{"what": "hello"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(prompt.Messages()[0].Role, prompt.Messages()[0].Content.Text)
	// Output:
	// city city has page://city/7
	// user say hello
}

// Answer what servers ask: here the person of this program is always called Ada. And follow how far a call has got.
func ExampleConfig_elicit() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": asking()},
		Servers:   map[string]supervisor.Spec{"a": {Type: supervisor.SDK, Era: supervisor.EraLegacy}},
		Elicit: func(_ context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			fmt.Printf("%s asks: %s\n", r.Server, r.Message)
			return supervisor.ElicitResult{Action: supervisor.ElicitAccept, Content: json.RawMessage(`{"name":"Ada"}`)}, nil
		},
		Roots: func(_ context.Context, server string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///srv/" + server}}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Settled(ctx); err != nil {
		fmt.Println(err)
		return
	}
	res, err := m.CallServerTool(ctx, "a", "elicit", nil, supervisor.WithProgress(func(p supervisor.Progress) {
		fmt.Println("progress", p.Progress)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text())
	// Output:
	// a asks: who?
	// {"age":30,"name":"Ada"}
}
