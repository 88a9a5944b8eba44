package stream_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stream"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func TestStreamContract(t *testing.T) {
	failing := func(class messages.Class, dial func(o transporttest.Options) (io.ReadWriteCloser, error)) func(*testing.T,
		transporttest.Options) (transports.Transport, messages.Class) {
		return func(_ *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
			return configured(stream.New(func(context.Context) (io.ReadWriteCloser, error) { return dial(o) }), o), class
		}
	}
	transporttest.Run(t, transporttest.Harness{
		New: func(t *testing.T, o transporttest.Options) transports.Transport {
			address := servePeer(t)
			return configured(stream.New(func(ctx context.Context) (io.ReadWriteCloser, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}), o)
		},
		Broken: map[string]func(*testing.T, transporttest.Options) (transports.Transport, messages.Class){
			"no function": func(_ *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
				return configured(stream.New(nil), o), messages.ClassConfig
			},
			"fails": failing(messages.ClassNetwork, func(o transporttest.Options) (io.ReadWriteCloser, error) {
				return nil, errors.New("no route for " + o.Secret)
			}),
			"refuses": failing(messages.ClassUnauthorized, func(o transporttest.Options) (io.ReadWriteCloser, error) {
				return nil, &transports.Error{Class: messages.ClassUnauthorized, Text: "not with " + o.Secret, Err: errors.New(o.Secret)}
			}),
			"gives nothing": failing(messages.ClassNetwork, func(transporttest.Options) (io.ReadWriteCloser, error) { return nil, nil }),
			"panics":        failing(messages.ClassPanic, func(transporttest.Options) (io.ReadWriteCloser, error) { panic("ouch") }),
		},
		Features: transporttest.Features{OneStream: true, DeathIsDown: true, Push: true, Noise: true, Stall: true},
	})
}

func configured(tr *stream.Transport, o transporttest.Options) transports.Transport {
	tr.MaxMessage, tr.Secrets = o.MaxMessage, []string{o.Secret}
	return tr
}

// servePeer plays the suite's peer for each connection to a listener of loopback, with one script for all of them.
func servePeer(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var peers sync.WaitGroup
	script := new(transporttest.Script)
	ctx, cancel := context.WithCancel(context.Background())
	peers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			peers.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				serving, ended := context.WithCancel(ctx)
				defer ended()
				in := bufio.NewReader(conn)
				_ = script.Serve(serving, &port{conn: conn}, func() ([]byte, error) { return in.ReadBytes('\n') })
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		peers.Wait()
	})
	return l.Addr().String()
}

// port writes lines to one connection.
type port struct {
	mu   sync.Mutex
	conn net.Conn
}

func (p *port) Write(msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.conn.Write(append(append([]byte{}, msg...), '\n'))
	return err
}

func (p *port) Push(msg []byte) error { return p.Write(msg) }

func (p *port) Noise(line []byte) error { return p.Write(line) }

func (p *port) Die() { _ = p.conn.Close() }
