package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stream"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// bus stands for the message bus of a program: NATS, AMQP, MQTT. What is published to a topic comes out of it in order, and publishing
// waits for the subscriber.
type bus struct{ topics sync.Map }

func (b *bus) subscribe(topic string) <-chan []byte { return b.topic(topic) }

func (b *bus) publish(ctx context.Context, topic string, payload []byte) error {
	select {
	case b.topic(topic) <- payload:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *bus) topic(name string) chan []byte {
	made, _ := b.topics.LoadOrStore(name, make(chan []byte))
	return made.(chan []byte)
}

// The transport begins here.

// newBusTransport reaches a server by its topic on a bus. Each connection has two topics of its own, to the server and from it; an
// empty payload ends it.
func newBusTransport(b *bus, server string) *stream.Transport {
	tr := stream.New(func(ctx context.Context) (io.ReadWriteCloser, error) {
		id := fmt.Sprintf("%s.%x", server, rand.Uint64())
		return openBus(b, id+".out", id+".in"), b.publish(ctx, server, []byte(id))
	})
	tr.Name = "bus"
	return tr
}

// busConn makes lines of the messages on two topics.
type busConn struct {
	bus    *bus
	in     <-chan []byte
	out    string
	rest   []byte // what Read has not returned yet of a message; its one reader owns it
	ctx    context.Context
	cancel context.CancelFunc
}

// openBus returns one end of a connection: each of its two sides has one.
func openBus(b *bus, in, out string) *busConn {
	c := &busConn{bus: b, in: b.subscribe(in), out: out}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Read returns the server's messages, each as a line: a line break inside of one can only be space between its parts.
func (c *busConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case message := <-c.in:
			if len(message) == 0 {
				return 0, io.EOF
			}
			c.rest = append(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), '\n')
		case <-c.ctx.Done():
			return 0, io.EOF
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write gets whole lines, one message each. It waits for the other side to read, until Close.
func (c *busConn) Write(line []byte) (int, error) {
	if err := c.bus.publish(c.ctx, c.out, bytes.TrimSuffix(bytes.Clone(line), []byte("\n"))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Close ends a Read and a Write that wait, and tells the other side, if that one still reads.
func (c *busConn) Close() error {
	c.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	return c.bus.publish(ctx, c.out, nil)
}

// The transport ends here.

// TestBusContract holds the transport to the contract of all transports: what a program should do with its own.
func TestBusContract(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		New: func(t *testing.T, o transporttest.Options) transports.Transport {
			b := new(bus)
			serveBus(t, b, "server")
			tr := newBusTransport(b, "server")
			tr.MaxMessage, tr.Secrets = o.MaxMessage, []string{o.Secret}
			return tr
		},
		Features: transporttest.Features{OneStream: true, DeathIsDown: true, Push: true, Noise: true, Stall: true},
	})
}

// TestTheBusTransportIsShort: the page of the library says how long it is.
func TestTheBusTransportIsShort(t *testing.T) {
	source, err := os.ReadFile("example_bus_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "// The transport begins here.\n")
	code, _, _ := strings.Cut(rest, "// The transport ends here.\n")
	lines := 0
	for _, line := range strings.Split(code, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if lines > 60 {
		t.Errorf("%d lines", lines)
	}
}

// serveBus plays the suite's peer for each connection that is opened on the bus.
func serveBus(t *testing.T, b *bus, topic string) {
	script := new(transporttest.Script)
	ctx, cancel := context.WithCancel(context.Background())
	var peers sync.WaitGroup
	peers.Go(func() {
		for {
			select {
			case id := <-b.subscribe(topic):
				peers.Go(func() {
					serving, died := context.WithCancel(ctx)
					defer died()
					_ = script.Serve(serving, &busPort{bus: b, ctx: serving, died: died, topic: string(id) + ".out"}, func() ([]byte, error) {
						select {
						case message := <-b.subscribe(string(id) + ".in"):
							if message == nil {
								return nil, io.EOF
							}
							return append(message, '\n'), nil
						case <-serving.Done():
							return nil, io.EOF
						}
					})
				})
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		peers.Wait()
	})
}

// busPort is the peer's end of one connection.
type busPort struct {
	bus   *bus
	ctx   context.Context
	died  context.CancelFunc
	topic string
}

func (p *busPort) Write(msg []byte) error  { return p.bus.publish(p.ctx, p.topic, bytes.Clone(msg)) }
func (p *busPort) Push(msg []byte) error   { return p.Write(msg) }
func (p *busPort) Noise(line []byte) error { return p.Write(line) }

func (p *busPort) Die() {
	_ = p.bus.publish(p.ctx, p.topic, nil) // after what was written before
	p.died()
}

// A transport of one's own: a server behind a message bus. newBusTransport and busConn, above in this file, are all of it; TestBusContract
// holds it to the contract of all transports.
func ExampleNew_bus() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := new(bus)
	go func() { // the server, which could be in another program
		for id := range b.subscribe("greeter") {
			conn := openBus(b, string(id)+".in", string(id)+".out")
			go server.NewStdioServer(greeter()).Listen(ctx, conn, conn)
		}
	}()
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers: map[string]supervisor.Spec{"greeter": {}}, // only Transport knows what it is
		Transport: func(name string, spec supervisor.Spec) (transports.Transport, error) {
			return newBusTransport(b, name), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close(ctx)
	if err := m.Ready(ctx, "greeter"); err != nil {
		fmt.Println(err)
		return
	}
	out, err := m.CallTool(ctx, "mcp__greeter__greet", map[string]any{"name": "Ada"})
	fmt.Println(out.Text(), err)
	// Output: hello, Ada <nil>
}
