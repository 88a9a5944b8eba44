package remote_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoremote "github.com/asynkron/protoactor-go/remote"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/remote"
)

// The side that has dialled closes a connection whose other end has vanished without a word, and reports it. The
// library asks for a sign of life after 10 s at the earliest, so the test takes as long.
func TestADialledConnectionThatIsDeadIsLetGo(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 11 s")
	}
	if raceEnabled {
		t.Skip("the actors' library sets the logger of grpc without a lock each time it starts, and this test starts it twice")
	}
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	between := listener.Addr().String()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	to := free.Addr().(*net.TCPAddr)
	must(t, free.Close())
	a := newAuthority(t)
	near := actor.NewActorSystem()
	far, err := supervisor.Start(t.Context(), supervisor.Config{})
	must(t, err)
	// The far side does not ask for a sign of life, so that only the near side can end the connection.
	cfg := remote.Config{Certificate: a.issue(t, "far"), CA: a.pool, Port: to.Port, AdvertisedHost: between,
		Rights: map[string]remote.Rights{remote.Anybody: remote.Everything()}}
	server, err := remote.Serve(far, remote.WithSilence(cfg, time.Hour, time.Hour))
	must(t, err)
	peer, err := remote.Join(near, remote.WithSilence(remote.Config{Certificate: a.issue(t, "near"), CA: a.pool}, time.Second, time.Second))
	must(t, err)
	pipe := &deadPipe{to: to.String()}
	go pipe.serve(listener)
	connected, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	near.EventStream.Subscribe(func(event any) {
		switch e := event.(type) {
		case *protoremote.EndpointConnectedEvent:
			if e.Address == between {
				connected <- struct{}{}
			}
		case *protoremote.EndpointTerminatedEvent:
			if e.Address == between {
				ended <- struct{}{}
			}
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		pipe.close()
		if !raceEnabled { // the library's end is a data race: see beManager
			peer.Close()
			server.Close()
		}
		must(t, far.Close(context.Background()))
	})
	near.Root.Send(remote.PID(between), &messages.GetStatus{})
	select {
	case <-connected:
	case <-time.After(time.Minute):
		t.Fatal("not connected")
	}
	pipe.die()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the connection is kept though nobody answers")
	}
}

// deadPipe forwards connections until it dies: then they stay open and forward nothing.
type deadPipe struct {
	to    string
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

func (p *deadPipe) serve(listener net.Listener) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		go p.forward(in, out)
		go p.forward(out, in)
	}
}

func (p *deadPipe) forward(to io.Writer, from io.Reader) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		dead := p.dead
		p.mu.Unlock()
		if err != nil || dead {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (p *deadPipe) die() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
}

func (p *deadPipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}
