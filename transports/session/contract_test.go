package session_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A goroutine that waits for the drain of a gate before the gate is closed gets the signal: at once if the gate is
// empty, otherwise when the last call has left, and not before.
func TestDrainedIsToldToWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		s := connected(t, w, session.Config{})
		over := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		empty := s.OpenGate()
		waiting := empty.Drained()
		empty.Close()
		if !over(waiting) {
			t.Error("an empty gate that was closed is not drained")
		}
		used := s.OpenGate()
		waiting = used.Drained()
		inside, leave := make(chan struct{}), make(chan struct{})
		go func() {
			_ = used.Do(func(*session.Session) error {
				close(inside)
				<-leave
				return nil
			})
		}()
		<-inside
		if n := used.InFlight(); n != 1 {
			t.Errorf("%d in flight while one is inside", n)
		}
		used.Close()
		if over(waiting) || over(used.Drained()) {
			t.Error("a gate is drained while somebody is inside")
		}
		close(leave)
		synctest.Wait()
		if !over(waiting) {
			t.Error("nobody is inside, and the gate is not drained")
		}
	})
}

// A list of exactly the largest size is read, and one that is larger by one entry is refused.
func TestAListAsLongAsMayBe(t *testing.T) {
	for _, n := range []int{3, 4} {
		w := &wire{}
		hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			var tools []string
			for i := range n {
				tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
			}
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s]}}`, m.ID, strings.Join(tools, ",")))
			return transports.Written, nil
		})
		list, err := connected(t, w, session.Config{MaxTools: 3}).ListTools(t.Context())
		if n == 3 && (err != nil || len(list.Tools) != 3) || n == 4 && err == nil {
			t.Errorf("%d tools where 3 may be: %d, %v", n, len(list.Tools), err)
		}
	}
}

// Notifications that the server sent while its stream was cut are lost, so every list counts as changed afterwards.
func TestAStreamThatWasReopenedIsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int64
		w := &wire{}
		connected(t, w, session.Config{OnToolsChanged: func() { changes.Add(1) }})
		w.sink.(transports.StreamReopenSink).StreamReopened()
		synctest.Wait()
		if changes.Load() != 1 {
			t.Errorf("%d changes after the stream was opened again", changes.Load())
		}
	})
}

// Every message of the server moves LastMessageAt, not only the first.
func TestHeardIsTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		s := connected(t, w, session.Config{})
		for range 3 {
			time.Sleep(time.Minute)
			w.receive(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			if at := s.LastMessageAt(); !at.Equal(time.Now()) {
				t.Errorf("heard at %v, and it is %v", at, time.Now())
			}
		}
	})
}

// slowTransport is a transport whose connection is released a minute after its end.
type slowTransport struct {
	*wire
	released chan struct{}
}

func (s *slowTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	if _, err := s.wire.Dial(ctx, sink); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *slowTransport) Released() <-chan struct{} { return s.released }

// A session is released when its connection is, and not when the connection has ended: a process may still run then.
func TestReleasedWaitsForTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowTransport{wire: &wire{}, released: make(chan struct{})}
		hello(w.wire, nil)
		s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Minute, func() { close(w.released) })
		w.end(&transports.Error{Class: messages.ClassExited, Text: "killed"})
		<-s.Released()
		if elapsed := time.Since(began); elapsed != time.Minute {
			t.Errorf("released after %v, and the connection was after a minute", elapsed)
		}
	})
}

// If a connection ends a request for a reason of its own, such as a forgotten session, the session ends and closes
// the connection.
func TestASessionThatIsGivenUpClosesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		s := connected(t, w, session.Config{NoiseLimit: 3})
		for range 5 {
			w.sink.Noise([]byte("what is this"))
		}
		synctest.Wait()
		select {
		case <-s.Released():
		default:
			t.Error("the connection of a session that was given up stays open")
		}
	})
}
