package inprocess_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func TestInProcessContract(t *testing.T) {
	seeds.Shows(t, "000.2.type-sdk", "003.5.transport-layer", "004.t.json-rpc")
	transporttest.Run(t, transporttest.Harness{
		New: func(_ *testing.T, o transporttest.Options) transports.Transport {
			tr := inprocess.New(serveScript)
			tr.MaxMessage = o.MaxMessage
			return tr
		},
		Broken: map[string]func(*testing.T, transporttest.Options) (transports.Transport, messages.Class){
			"no server": func(*testing.T, transporttest.Options) (transports.Transport, messages.Class) {
				return inprocess.New(nil), messages.ClassConfig
			},
		},
		Features: transporttest.Features{OneStream: true, DeathIsDown: true, Push: true, Stall: true},
	})
}

// serveScript plays the suite's peer in process. It dies as code of the same program does: serve returns.
func serveScript(ctx context.Context, peer inprocess.Peer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	script := new(transporttest.Script)
	_ = script.Serve(ctx, &peerPort{peer: peer, die: cancel}, func() ([]byte, error) { return peer.Read(ctx) })
	if cause := context.Cause(ctx); errors.Is(cause, errDied) {
		return cause
	}
	return nil
}

var errDied = errors.New("the peer died")

type peerPort struct {
	peer inprocess.Peer
	die  context.CancelCauseFunc
}

func (p *peerPort) Write(msg []byte) error { return p.peer.Write(context.Background(), msg) }

func (p *peerPort) Push(msg []byte) error { return p.peer.Write(context.Background(), msg) }

func (p *peerPort) Noise([]byte) error { return errors.New("no such thing") }

func (p *peerPort) Die() { p.die(errDied) }
