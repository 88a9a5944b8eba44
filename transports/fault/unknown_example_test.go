package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// What a program does with a call of which nobody knows whether it ran: half of the answer arrives, and the connection ends.
func ExampleCut() {
	t := &testRecorder{} // in a test it is the *testing.T
	control := fault.Test(t, fault.Cut(fault.Tool("write"), fault.Times(1)))
	m, err := supervisor.Start(context.Background(), supervisor.Config{
		Servers: map[string]supervisor.Spec{"files": {Type: messages.SDK}},
		Transport: func(name string, _ supervisor.Spec) (transports.Transport, error) {
			return fault.Wrap(inprocess.New(files), control.Named(name)), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.Ready(ctx, "files"); err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.CallServerTool(ctx, "files", "write", nil)
	fmt.Println(errors.Is(err, supervisor.ErrOutcomeUnknown), errors.Is(err, supervisor.ErrNotSent))
	// Output: true false
}

// files is a server of the legacy era with the tool write.
func files(ctx context.Context, peer inprocess.Peer) error {
	for {
		b, err := peer.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(b, &m) != nil || m.ID == nil {
			continue
		}
		answer := map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}`,
			"tools/list": `"result":{"tools":[{"name":"write","inputSchema":{"type":"object"}}]}`,
			"tools/call": `"result":{"content":[{"type":"text","text":"written"}]}`,
			"ping":       `"result":{}`,
		}[m.Method]
		if answer == "" {
			answer = `"error":{"code":-32601,"message":"no such method"}`
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)); err != nil {
			return err
		}
	}
}
