package websocket_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/websocket"
)

// These tests run in virtual time, on a pipe: the bounds are exact.

func dialPipe(t *testing.T, cfg websocket.Config) (transports.Conn, *transporttest.Recorder, *rawSocket) {
	t.Helper()
	tr, peer := pipeSocket(t, cfg)
	r := &transporttest.Recorder{}
	c, err := tr.Dial(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return c, r, peer
}

// downOf is why the connection is down, nil if it is not.
func downOf(t *testing.T, r *transporttest.Recorder) *transports.Error {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	downs := r.Downs()
	if len(downs) == 0 {
		return nil
	}
	var e *transports.Error
	if !errors.As(downs[0], &e) {
		t.Fatalf("Down was told %v, which is no *Error", downs[0])
	}
	return e
}

func TestWebSocketNoticesAHalfOpenConnection(t *testing.T) {
	for name, c := range map[string]struct{ ping, bound time.Duration }{
		"by default": {0, 45 * time.Second},
		"sooner":     {2 * time.Second, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, r, peer := dialPipe(t, websocket.Config{Ping: c.ping})
				pings := make(chan int)
				go func() {
					n := 0
					for op, _ := peer.read(); op != 0; op, _ = peer.read() {
						if op == framePing {
							n++
						}
					}
					pings <- n
				}()
				time.Sleep(c.bound - time.Millisecond)
				synctest.Wait()
				if e := downOf(t, r); e != nil {
					t.Fatalf("down too early: %v", e)
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if e := downOf(t, r); e == nil || e.Class != messages.ClassNetwork {
					t.Fatalf("after %v of silence: %v, want down of class network", c.bound, e)
				}
				select {
				case <-conn.Released():
				default:
					t.Error("the connection is not released")
				}
				if n := <-pings; n != 2 {
					t.Errorf("%d pings, want 2", n)
				}
			})
		})
	}
}

func TestWebSocketPongsKeepASlowServerConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, r, peer := dialPipe(t, websocket.Config{})
		go func() {
			for op, payload := peer.read(); op != 0; op, payload = peer.read() {
				if op == framePing {
					peer.write(frameFinal|framePong, len(payload), payload)
				}
			}
		}()
		time.Sleep(24 * time.Hour)
		if e := downOf(t, r); e != nil {
			t.Errorf("a server that answers every ping is down: %v", e)
		}
		_ = conn.Close(t.Context())
	})
}

func TestWebSocketPingsCanBeTurnedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, r, peer := dialPipe(t, websocket.Config{Ping: -1})
		go func() {
			if op, _ := peer.read(); op != frameClose {
				t.Errorf("frame %x, want none but the closing one", op)
			}
			_ = peer.Close()
		}()
		time.Sleep(time.Hour)
		if e := downOf(t, r); e != nil {
			t.Errorf("down: %v", e)
		}
		_ = conn.Close(t.Context())
	})
}

func TestWebSocketALongUploadIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, r, peer := dialPipe(t, websocket.Config{})
		defer func() { _ = conn.Close(t.Context()) }()
		big := []byte(`{"x":"` + strings.Repeat("u", 64<<10) + `"}`)
		sent := make(chan error, 1)
		go func() {
			_, err := conn.Send(t.Context(), transports.Message{Body: big})
			sent <- err
		}()
		piece := make([]byte, 1<<10)
		for total := 0; total < len(big); { // 65 KiB at 1 KiB in 10 s: 11 minutes in which the server says nothing
			time.Sleep(10 * time.Second)
			n, err := peer.Conn.Read(piece)
			if err != nil {
				t.Fatalf("after %d bytes: %v; down: %v", total, err, downOf(t, r))
			}
			total += n
		}
		go func() { // the frame's head has made it a little longer
			for _, err := peer.Conn.Read(piece); err == nil; _, err = peer.Conn.Read(piece) {
				continue
			}
		}()
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

func TestWebSocketReadsAndAnswersPingsAroundAStalledMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, r, peer := dialPipe(t, websocket.Config{Ping: -1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d, err := conn.Send(ctx, transports.Message{Body: []byte(`{"a":"` + strings.Repeat("s", 9000) + `"}`)})
		if d != transports.MaybeWritten || err == nil {
			t.Fatalf("Send to a server that does not read: %v, %v", d, err)
		}
		for i := range 3 {
			peer.write(frameFinal|framePing, 5, fmt.Sprintf("ping%d", i))
			time.Sleep(10 * time.Second) // the library gives a pong 5 s
			peer.text(fmt.Sprintf(`{"n":%d}`, i))
		}
		synctest.Wait()
		if n := len(r.Messages()); n != 3 || downOf(t, r) != nil {
			t.Fatalf("%d messages, want 3; down: %v", n, downOf(t, r))
		}
		sent := make(chan error)
		go func() {
			_, err := conn.Send(t.Context(), transports.Message{Body: []byte(`{"b":1}`)})
			sent <- err
		}()
		var got []string
		for range 3 {
			op, payload := peer.read()
			got = append(got, fmt.Sprintf("%x %.10s", op, payload))
		}
		// The message whose sender has left is whole, and of three pings the last one is answered.
		want := []string{`1 {"a":"ssss`, `a ping2`, `1 {"b":1}`}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the server got %q, want %q", got, want)
		}
		if err := <-sent; err != nil {
			t.Errorf("the message after the stalled one: %v", err)
		}
		_ = conn.Close(t.Context())
	})
}

func TestWebSocketCloseIsBoundedByGrace(t *testing.T) {
	for name, reads := range map[string]bool{"a server that does not answer": true, "one that does not read": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, r, peer := dialPipe(t, websocket.Config{Grace: 3 * time.Second})
				said := make(chan string, 1)
				if reads {
					go func() {
						_, payload := peer.read()
						said <- payload
					}()
				}
				began := time.Now()
				if err := conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != 3*time.Second {
					t.Errorf("Close took %v, want the grace of 3s", took)
				}
				if e := downOf(t, r); e == nil || e.Class != messages.ClassCanceled {
					t.Errorf("down: %v", e)
				}
				if reads && <-said != "\x03\xe8" {
					t.Error("the server was not told the normal end, 1000")
				}
			})
		})
	}
}
