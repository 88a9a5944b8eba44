package fault_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// answers is a sink that signals each answer.
type answers chan struct{}

func (a answers) Message([]byte)                  { a <- struct{}{} }
func (a answers) Oversized([]byte, []byte, int64) {}
func (a answers) Noise([]byte)                    {}
func (a answers) Down(error)                      {}

// BenchmarkCall compares a request and its answer in process: direct, wrapped without a rule, and with one that matches
// nothing.
func BenchmarkCall(b *testing.B) {
	answer := json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	peer := func(ctx context.Context, p inprocess.Peer) error {
		for {
			if _, err := p.Read(ctx); err != nil {
				return err
			}
			if err := p.Write(ctx, answer); err != nil {
				return err
			}
		}
	}
	for name, rules := range map[string][]fault.Rule{"direct": nil, "passive": {}, "nothing matches": {nowhere}} {
		b.Run(name, func(b *testing.B) {
			var tr transports.Transport = inprocess.New(peer)
			if rules != nil {
				control, err := fault.New(1, rules...)
				if err != nil {
					b.Fatal(err)
				}
				tr = fault.Wrap(tr, control)
			}
			sink := make(answers, 1)
			c, err := tr.Dial(context.Background(), sink)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close(context.Background())
			m := request(1, "tools/call", "echo")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Send(context.Background(), m); err != nil {
					b.Fatal(err)
				}
				<-sink
			}
		})
	}
}
