// Package mcpvisor is the adapter of "mcpvisor chaos score" for this module's own facade.
//
// It is written like an embedding program: one manager for all servers, Connect, CallServerTool with a context, ServerStatus,
// Close. Two options are set: a guardian, as package supervisor advises for programs that may be killed, and probes every 2 s,
// as often as the other adapters ping. The others have their defaults.
package mcpvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// scoredClient implements adapter.Client.
type scoredClient struct {
	m     *supervisor.Manager
	guard *stdio.Guardian
}

// New makes the client. guard ends the servers if this program is killed; nil leaves them running then.
func New(guard *stdio.Guardian) (adapter.Client, error) {
	cfg := supervisor.Config{
		Timing: actors.Timing{ProbeEvery: 2 * time.Second, ProbeTimeout: 2 * time.Second},
	}
	if guard != nil {
		cfg.Guard = guard
	}
	m, err := supervisor.Start(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	return &scoredClient{m, guard}, nil
}

func (d *scoredClient) About() string {
	return "mcpvisor " + supervisor.Version() + "; a guardian, ProbeEvery 2s, ProbeTimeout 2s"
}

func (d *scoredClient) Connect(ctx context.Context, name string, s adapter.Server) error {
	return d.m.Connect(ctx, name, messages.Spec{Command: s.Command, Args: s.Args, URL: s.URL, Headers: s.Headers})
}

// Tools returns the server's tools in the current catalog. An empty list of a server that is not connected is an error, because
// the client cannot know the tools.
func (d *scoredClient) Tools(_ context.Context, name string) ([]string, error) {
	st, err := d.m.ServerStatus(name)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for e := range d.m.Tools().All() {
		if e.Tool.Server == name {
			names = append(names, e.Tool.Name)
		}
	}
	if len(names) == 0 && st.Status != messages.Connected {
		return nil, fmt.Errorf("server %q is %s: %s", name, st.Status, st.Error)
	}
	return names, nil
}

// Call implements adapter.Client. Beside the deadline of ctx the callTimeout of its spec bounds the call.
func (d *scoredClient) Call(ctx context.Context, name, tool string, args json.RawMessage) (json.RawMessage, error) {
	r, err := d.m.CallServerTool(ctx, name, tool, args)
	if err != nil {
		return nil, err
	}
	return r.Raw, nil
}

// Status implements adapter.Client, in the words of the manager: "connected" is the one that the score knows.
func (d *scoredClient) Status(context.Context) map[string]string {
	all := map[string]string{}
	for _, st := range d.m.Status() {
		all[st.Name] = string(st.Status)
	}
	return all
}

// Close removes the server from the manager, which ends its connection.
func (d *scoredClient) Close(ctx context.Context, name string) error {
	err := d.m.Remove(ctx, name)
	if errors.Is(err, supervisor.ErrUnknownServer) {
		return nil
	}
	return err
}

// Quit closes the manager and then the guardian.
func (d *scoredClient) Quit(ctx context.Context) {
	// The guardian ends what is left.
	_ = d.m.Close(ctx)
	if d.guard != nil {
		d.guard.Close()
	}
}
