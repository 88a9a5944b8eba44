package client_test

import (
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func sdkClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
}

func play(t *testing.T, s scenario.Scenario, dial client.Dial) (*history.History, []invariant.Verdict) {
	t.Helper()
	plan, err := s.Plan(0, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := client.Run(t.Context(), plan, dial)
	if err != nil {
		t.Fatal(err)
	}
	return h, client.Judge(h, client.Limits{})
}

func ioTransport(stream io.ReadWriteCloser) mcp.Transport {
	return &mcp.IOTransport{Reader: stream, Writer: stream}
}
