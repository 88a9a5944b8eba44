package fault_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// TestMain makes this binary the server of the tests that need a process.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "script" {
		playScript()
		return
	}
	os.Exit(m.Run())
}

const roleVariable = "FAULT_TEST_ROLE"

// linePort is the scripted peer's side of standard output.
type linePort struct{ mu sync.Mutex }

func (p *linePort) Write(msg []byte) error { return p.Noise(msg) }
func (p *linePort) Push(msg []byte) error  { return p.Noise(msg) }
func (p *linePort) Die()                   { os.Exit(3) }
func (p *linePort) Noise(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := os.Stdout.Write(append(bytes.Clone(line), '\n'))
	return err
}

func playScript() {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	_ = (&transporttest.Script{}).Serve(context.Background(), &linePort{}, func() ([]byte, error) { return in.ReadBytes('\n') })
}

// peerPort is the scripted peer's side of an in-process connection.
type peerPort struct {
	peer inprocess.Peer
	die  context.CancelFunc
}

func (p peerPort) Write(msg []byte) error {
	return p.peer.Write(context.Background(), bytes.Clone(msg))
}
func (p peerPort) Push(msg []byte) error { return p.Write(msg) }
func (p peerPort) Noise([]byte) error    { return errors.New("there are no lines") }
func (p peerPort) Die()                  { p.die() }

func scripted(o transporttest.Options) transports.Transport {
	tr := inprocess.New(func(ctx context.Context, peer inprocess.Peer) error {
		ctx, die := context.WithCancel(ctx)
		defer die()
		err := (&transporttest.Script{}).Serve(ctx, peerPort{peer, die}, func() ([]byte, error) { return peer.Read(ctx) })
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	tr.MaxMessage = o.MaxMessage
	return tr
}

func process(o transporttest.Options) transports.Transport {
	return stdio.New(stdio.Config{
		Command: os.Args[0], MaxMessage: o.MaxMessage,
		Env: []string{roleVariable + "=script", "TOKEN=" + o.Secret}, Args: []string{"--key", o.Secret},
	})
}

// nowhere is a rule that matches no message of the suite.
var nowhere = fault.Rule{Fault: "hang-call", On: "no/such/method"}

// TestContract: a wrapped transport keeps the contract of package transports, without rules, with a rule that matches
// nothing, and with one that delays every message a little. Most of the suite's time is waiting, so the last three
// run with NIGHTLY=1 only.
func TestContract(t *testing.T) {
	inProcess := transporttest.Features{OneStream: true, DeathIsDown: true, Push: true, Stall: true}
	stdio := inProcess
	stdio.Noise, stdio.PID = true, true
	for _, c := range []struct {
		name     string
		make     func(transporttest.Options) transports.Transport
		rules    []fault.Rule
		features transporttest.Features
		nightly  bool
	}{
		{"stdio, no rule", process, nil, stdio, false},
		{"in process, latency", scripted, []fault.Rule{{Fault: "latency", With: map[string]string{"by": "1ms"}}}, inProcess, false},
		{"in process, no rule", scripted, nil, inProcess, true},
		{"in process, no match", scripted, []fault.Rule{nowhere}, inProcess, true},
		{"stdio, no match", process, []fault.Rule{nowhere}, stdio, true},
	} {
		if c.nightly && os.Getenv("NIGHTLY") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			transporttest.Run(t, transporttest.Harness{
				New: func(t *testing.T, o transporttest.Options) transports.Transport {
					control, err := fault.New(1, c.rules...)
					if err != nil {
						t.Fatal(err)
					}
					return fault.Wrap(c.make(o), control)
				},
				Features: c.features,
			})
		})
	}
}
