package inprocess_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func TestInProcessEnds(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(context.Context, inprocess.Peer) error
		class messages.Class
		text  string
	}{
		"returns": {func(context.Context, inprocess.Peer) error { return nil }, messages.ClassExited, "returned"},
		"fails": {func(context.Context, inprocess.Peer) error { return errors.New("no luck.") },
			messages.ClassExited, "failed: no luck"},
		"panics": {func(context.Context, inprocess.Peer) error { panic("kaboom\x1b[31m") },
			messages.ClassPanic, "kaboom\ufffd[31m"},
		"panics late": {func(ctx context.Context, p inprocess.Peer) error { _, _ = p.Read(ctx); panic(io.EOF) },
			messages.ClassPanic, "EOF"},
		"exits": {func(context.Context, inprocess.Peer) error { runtime.Goexit(); return nil },
			messages.ClassExited, "ended its goroutine"},
		"runtime error": {func(ctx context.Context, _ inprocess.Peer) error { return ctx.Value("none").(error) },
			messages.ClassPanic, "interface conversion"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cn := conntest.Dial(t, inprocess.New(c.serve))
				if name == "panics late" {
					cn.Notify("wake up")
				}
				cn.Wait(t, conntest.Bound, "Down", func() bool { return len(cn.Downs()) > 0 })
				if e := conntest.BoundaryError(t, cn.Downs()[0]); e.Class != c.class || !strings.Contains(e.Text, c.text) {
					t.Errorf("class %q, %q", e.Class, e.Text)
				}
				<-cn.Released()
				if _, d, err := cn.TrySend(t.Context(), "x", `{}`); d != transports.NotWritten || err == nil || err.Class != c.class {
					t.Errorf("Send afterwards: %v, %v", d, err)
				}
			})
		})
	}
}

// TestInProcessStubborn: code of the same program cannot be killed, and Close does not wait for it for ever.
func TestInProcessStubborn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		late := make(chan error, 1)
		tr := inprocess.New(func(ctx context.Context, p inprocess.Peer) error {
			<-release
			late <- p.Write(context.Background(), []byte(`{"late":true}`))
			return nil
		})
		c := conntest.Dial(t, tr)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if e := conntest.BoundaryError(t, c.Close(ctx)); e.Class != messages.ClassTimeout || time.Since(start) != time.Second {
			t.Errorf("Close with 1s: %v after %v", e, time.Since(start))
		}
		if len(c.Downs()) != 1 {
			t.Error("Down waits for a server that does not end")
		}
		if err := c.Close(context.Background()); err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		close(release)
		if err := <-late; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a write after the end: %v", err)
		}
	})
}

// panickingSink is a sink that panics.
type panickingSink struct {
	*transporttest.Recorder
}

func (r panickingSink) Message([]byte) { panic("a bug of ours") }

func TestInProcessSinkPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := panickingSink{&transporttest.Recorder{}}
		conn, err := inprocess.New(echo).Dial(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Send(t.Context(), transports.Message{ID: 1, Body: []byte(`{"id":1,"method":"x"}`)}); err != nil {
			t.Fatal(err)
		}
		<-conn.Released()
		if downs := r.Downs(); len(downs) != 1 || conntest.BoundaryError(t, downs[0]).Class != messages.ClassPanic {
			t.Errorf("Down: %v", downs)
		}
	})
}

func TestInProcessPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type got struct {
			msg string
			err error
		}
		reads := make(chan got)
		c := conntest.Dial(t, inprocess.New(func(_ context.Context, p inprocess.Peer) error {
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := p.Read(short)
			reads <- got{err: err}
			if err := p.Write(short, []byte(`{}`)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Write with an ended context: %v", err)
			}
			if err := p.Write(context.Background(), nil); err == nil {
				t.Error("an empty message was written")
			}
			for {
				msg, err := p.Read(context.Background()) // not serve's context: Read must return at the end all the same
				reads <- got{string(msg), err}
				if err != nil {
					return nil
				}
			}
		}))
		if r := <-reads; !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("Read with a context that ends: %v", r.err)
		}
		for i := range 3 {
			c.Notify(fmt.Sprint(i))
		}
		for i := range 3 {
			if r := <-reads; r.err != nil || !strings.Contains(r.msg, fmt.Sprintf(`"method":"%d"`, i)) {
				t.Errorf("Read %d: %s, %v", i, r.msg, r.err)
			}
		}
		go c.CloseChecked()
		if r := <-reads; !errors.Is(r.err, io.EOF) {
			t.Errorf("Read at the end: %v", r.err)
		}
	})
}

// echo answers every request with an empty result.
func echo(ctx context.Context, p inprocess.Peer) error {
	for {
		msg, err := p.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the connection has ended
		}
		_, rest, _ := strings.Cut(string(msg), `"id":`)
		id, _, _ := strings.Cut(rest, ",")
		if err := p.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)); err != nil {
			return err
		}
	}
}

// notifyingSink is a sink that tells of each message.
type notifyingSink struct {
	conntest.DroppingSink
	ch chan struct{}
}

func (a *notifyingSink) Message([]byte) { a.ch <- struct{}{} }

func BenchmarkInProcess(b *testing.B) {
	sink := &notifyingSink{ch: make(chan struct{}, 1)}
	conn, err := inprocess.New(echo).Dial(b.Context(), sink)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	m := transports.Message{ID: 1, Method: "tools/call",
		Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Send(context.Background(), m); err != nil {
			b.Fatal(err)
		}
		<-sink.ch
	}
}

// BenchmarkInProcessIdle shows what one connection costs that does nothing.
func BenchmarkInProcessIdle(b *testing.B) {
	const n = 5000
	tr := inprocess.New(echo)
	for b.Loop() {
		heap, stack := conntest.MeasureMemory()
		conns := make([]transports.Conn, n)
		for i := range conns {
			c, err := tr.Dial(b.Context(), &conntest.DroppingSink{})
			if err != nil {
				b.Fatal(err)
			}
			conns[i] = c
		}
		moreHeap, moreStack := conntest.MeasureMemory()
		b.ReportMetric(float64(moreHeap-heap)/n, "heapB/conn")
		b.ReportMetric(float64(moreStack-stack)/n, "stackB/conn")
		var wg sync.WaitGroup
		for _, c := range conns {
			wg.Add(1)
			go func() {
				defer wg.Done()
				_ = c.Close(context.Background())
			}()
		}
		wg.Wait()
	}
}
