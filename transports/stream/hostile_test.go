package stream_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stream"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// half is a stream of which each method is the test's.
type half struct {
	read, write func([]byte) (int, error)
	close       func() error
}

func (h half) Read(p []byte) (int, error)  { return h.read(p) }
func (h half) Write(p []byte) (int, error) { return h.write(p) }
func (h half) Close() error                { return h.close() }

// TestStreamsThatBehaveBadly: whatever a stream's methods do, Send and Close come back, the sink gets one Down, and it says why.
func TestStreamsThatBehaveBadly(t *testing.T) {
	taken := func(p []byte) (int, error) { return len(p), nil }
	for name, c := range map[string]struct {
		make func(stuck <-chan struct{}) half
		// down is what the connection ends with by itself; empty if it lives until Close.
		down  string
		class messages.Class
		// delivery is that of a Send that gives up after a minute.
		delivery transports.Delivery
	}{
		"a read that does not return": {
			make: func(stuck <-chan struct{}) half {
				return half{func([]byte) (int, error) { <-stuck; return 0, io.EOF }, taken, func() error { return nil }}
			}, class: messages.ClassCanceled, delivery: transports.Written,
		},
		"a write that does not return": {
			make: func(stuck <-chan struct{}) half {
				return half{func([]byte) (int, error) { <-stuck; return 0, io.EOF },
					func(p []byte) (int, error) { <-stuck; return len(p), nil }, func() error { return nil }}
			}, class: messages.ClassCanceled, delivery: transports.MaybeWritten,
		},
		"a close that does not return": {
			make: func(stuck <-chan struct{}) half {
				return half{func([]byte) (int, error) { <-stuck; return 0, io.EOF }, taken, func() error { <-stuck; return nil }}
			}, class: messages.ClassCanceled, delivery: transports.Written,
		},
		"a close that panics": {
			make: func(stuck <-chan struct{}) half {
				return half{func([]byte) (int, error) { <-stuck; return 0, io.EOF }, taken, func() error { panic("ouch") }}
			}, class: messages.ClassCanceled, delivery: transports.Written,
		},
		"reads of nothing for ever": {
			make: func(<-chan struct{}) half {
				return half{func([]byte) (int, error) { return 0, nil }, taken, func() error { return nil }}
			}, down: "multiple Read calls return no data or error", class: messages.ClassNetwork, delivery: transports.NotWritten,
		},
		"a read of more than there is room for": {
			make: func(<-chan struct{}) half {
				return half{func(p []byte) (int, error) { return len(p) + 1, nil }, taken, func() error { return nil }}
			}, down: "impossible", class: messages.ClassProtocol, delivery: transports.NotWritten,
		},
		"a read that panics": {
			make: func(<-chan struct{}) half {
				return half{func([]byte) (int, error) { panic("ouch") }, taken, func() error { return nil }}
			}, down: "its Read: panic: ouch", class: messages.ClassPanic, delivery: transports.NotWritten,
		},
		"a read that ends its goroutine": {
			make: func(<-chan struct{}) half {
				return half{func([]byte) (int, error) { runtime.Goexit(); return 0, nil }, taken, func() error { return nil }}
			}, down: "its Read ended its goroutine", class: messages.ClassPanic, delivery: transports.NotWritten,
		},
		"a write that ends its goroutine": {
			make: func(stuck <-chan struct{}) half {
				return half{func([]byte) (int, error) { <-stuck; return 0, io.EOF }, func([]byte) (int, error) { runtime.Goexit(); return 0, nil },
					func() error { return nil }}
			}, down: "its Write ended its goroutine", class: messages.ClassPanic, delivery: transports.MaybeWritten,
		},
		"an error with a secret": {
			make: func(<-chan struct{}) half {
				return half{func([]byte) (int, error) { return 0, errors.New("no hunter2hunter2") }, taken, func() error { return nil }}
			}, down: "the stream broke: no [redacted]", class: messages.ClassNetwork, delivery: transports.NotWritten,
		},
		"a write that takes a part": {
			make: func(stuck <-chan struct{}) half {
				return half{func([]byte) (int, error) { <-stuck; return 0, io.EOF }, func([]byte) (int, error) { return 1, nil },
					func() error { return nil }}
			}, down: io.ErrShortWrite.Error(), class: messages.ClassNetwork, delivery: transports.MaybeWritten,
		},
		"a write that panics": {
			make: func(stuck <-chan struct{}) half {
				return half{func([]byte) (int, error) { <-stuck; return 0, io.EOF }, func([]byte) (int, error) { panic("ouch") },
					func() error { return nil }}
			}, down: "its Write: panic: ouch", class: messages.ClassPanic, delivery: transports.MaybeWritten,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := make(chan struct{})
				defer close(stuck) // what was left behind ends with the test
				tr := stream.New(func(context.Context) (io.ReadWriteCloser, error) { return c.make(stuck), nil })
				tr.Secrets = []string{"hunter2hunter2"}
				sink := &transporttest.Recorder{}
				conn, err := tr.Dial(t.Context(), sink)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				d, err := conn.Send(ctx, transports.Message{ID: 1, Body: []byte(`{}`)})
				if d != c.delivery || (err == nil) != (d == transports.Written) {
					t.Errorf("Send: %v, %v", d, err)
				}
				if c.down != "" {
					<-conn.Released() // by itself
				}
				began := time.Now()
				if err := conn.Close(t.Context()); err != nil || time.Since(began) > 5*time.Second {
					t.Errorf("Close after %v: %v", time.Since(began), err)
				}
				var e *transports.Error
				if downs := sink.Downs(); len(downs) != 1 || !errors.As(downs[0], &e) || e.Class != c.class || !strings.Contains(e.Text, c.down) {
					t.Errorf("down with %v", downs)
				}
			})
		})
	}
}

// TestADialThatComesTooLate: a dial that does not obey its context is not waited for, and what it opens later is closed.
func TestADialThatComesTooLate(t *testing.T) {
	for name, late := range map[string]time.Duration{"at once": 0, "soon": time.Second, "much later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var closed sync.WaitGroup
				closed.Add(1)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				tr := stream.New(func(context.Context) (io.ReadWriteCloser, error) {
					<-ctx.Done()
					time.Sleep(late)
					return half{close: func() error { closed.Done(); return nil }}, nil
				})
				began := time.Now()
				_, err := tr.Dial(ctx, &transporttest.Recorder{})
				var e *transports.Error
				if !errors.As(err, &e) || e.Class != messages.ClassTimeout || time.Since(began) > 70*time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				closed.Wait()
			})
		})
	}
}

// TestADialThatIsCanceled: the end of the context is the reason, also where dial itself tells of it by an error of its own.
func TestADialThatIsCanceled(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		tr := stream.New(func(ctx context.Context) (io.ReadWriteCloser, error) {
			<-ctx.Done()
			return nil, errors.New("operation was canceled")
		})
		go cancel()
		if _, err := tr.Dial(ctx, &transporttest.Recorder{}); !isCanceled(err) {
			t.Fatal(err)
		}
	}
}

func isCanceled(err error) bool {
	var e *transports.Error
	return errors.As(err, &e) && e.Class == messages.ClassCanceled
}

// TestADialThatGivesNoStream: whatever it does in the place of returning a stream, the attempt ends with an error that says so.
func TestADialThatGivesNoStream(t *testing.T) {
	for want, dial := range map[string]func(context.Context) (io.ReadWriteCloser, error){
		"returned neither a stream nor an error": func(context.Context) (io.ReadWriteCloser, error) { return nil, nil },
		"the stream: panic: ouch":                func(context.Context) (io.ReadWriteCloser, error) { panic("ouch") },
		"the stream ended its goroutine":         func(context.Context) (io.ReadWriteCloser, error) { runtime.Goexit(); return nil, nil },
	} {
		_, err := stream.New(dial).Dial(t.Context(), &transporttest.Recorder{})
		var e *transports.Error
		if !errors.As(err, &e) || !strings.Contains(e.Text, want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
