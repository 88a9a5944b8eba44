package peer_test

import (
	"bufio"
	"context"
	"io"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
)

// shell performs a machine's actions at once, on one connection. The machine has no times, so that there is nothing to wait
// for.
type shell struct {
	mu     sync.Mutex
	m      peer.Machine
	write  func(body []byte)
	onExit func()
}

func newShell(era messages.Era, write func([]byte), onExit func()) *shell {
	s := &shell{
		m:     peer.New(peer.Config{Server: scenario.Server{Name: "s", Kind: messages.Stdio, Era: era, Tools: 7, Pages: 3}, Seed: 1}),
		write: write, onExit: onExit,
	}
	s.m.Open(0, 1)
	return s
}

func (s *shell) perform(do func(m peer.Machine) []peer.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range do(s.m) {
		switch a := a.(type) {
		case peer.Send:
			s.write(a.Body)
		case peer.Exit:
			s.onExit()
		}
	}
}

func (s *shell) receive(body []byte) {
	s.perform(func(m peer.Machine) []peer.Action { return m.Receive(0, 1, body, nil) })
}

func (s *shell) change() {
	s.perform(func(m peer.Machine) []peer.Action {
		return m.Begin(0, scenario.PlannedFault{ID: 1, Fault: "list-changed"})
	})
}

// newPipedShell is a shell at the other end of a pipe, a message per line.
func newPipedShell(t *testing.T, era messages.Era) (s *shell, in io.ReadCloser, out io.WriteCloser) {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	s = newShell(era, func(body []byte) { _, _ = fromServer.Write(append(body, '\n')) }, func() {})
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(toServer)
		for lines.Scan() {
			s.receive(lines.Bytes())
		}
	}()
	t.Cleanup(func() {
		toServer.Close()
		toClient.Close()
		<-done
	})
	return s, toClient, fromClient
}

// wire is a transport of ours to a shell.
type wire struct {
	era      messages.Era
	sink     transports.Sink
	shell    *shell
	released chan struct{}
	once     sync.Once
}

func (w *wire) Kind() messages.TransportKind { return messages.Stdio }

func (w *wire) Dial(_ context.Context, sink transports.Sink) (transports.Conn, error) {
	w.sink, w.released = sink, make(chan struct{})
	w.shell = newShell(w.era, sink.Message, func() {
		w.once.Do(func() {
			go func() { // the sink must not be called from inside a Send
				sink.Down(&transports.Error{Class: messages.ClassCanceled, Text: "closed"})
				close(w.released)
			}()
		})
	})
	return w, nil
}

func (w *wire) Send(_ context.Context, m transports.Message) (transports.Delivery, error) {
	w.shell.receive(m.Body)
	return transports.Written, nil
}

func (w *wire) Close(context.Context) error {
	w.shell.perform(func(m peer.Machine) []peer.Action { return m.Closed(0, 1, false) })
	<-w.released
	return nil
}

func (w *wire) Negotiated(string)         {}
func (w *wire) Released() <-chan struct{} { return w.released }
func (w *wire) Info() transports.Info     { return transports.Info{} }
