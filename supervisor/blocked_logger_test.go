package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// blockingHandler is a handler of slog that does not return before release is closed, whatever it is asked. It keeps the lines.
type blockingHandler struct {
	release <-chan struct{}
	mu      *sync.Mutex
	lines   *[]string
}

func (h blockingHandler) Enabled(context.Context, slog.Level) bool { <-h.release; return true }
func (h blockingHandler) WithAttrs([]slog.Attr) slog.Handler       { <-h.release; return h }
func (h blockingHandler) WithGroup(string) slog.Handler            { <-h.release; return h }
func (h blockingHandler) Handle(_ context.Context, r slog.Record) error {
	<-h.release
	h.mu.Lock()
	defer h.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	*h.lines = append(*h.lines, line)
	return nil
}

// TestALoggerThatDoesNotReturnHoldsNobody: who logs waits a second for it, once. Servers connect and are called meanwhile. When it goes
// on, it gets what waited, and how many lines were lost.
func TestALoggerThatDoesNotReturnHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := blockingHandler{release, new(sync.Mutex), new([]string)}
		cfg := supervisortest.AddTo(supervisor.Config{
			Logger: supervisor.NewSlogLogger(h),
			Allow: func(_ context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
				if tool.Name == "bad" {
					panic("ouch") // which is logged
				}
				return nil
			},
		}, supervisortest.NewServer("s", supervisortest.Echo("x"), supervisortest.Echo("bad")))
		began := time.Now()
		m, err := supervisor.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Ready(t.Context()); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("ready after %v: %v", time.Since(began), err)
		}
		_, _ = m.CallServerTool(t.Context(), "s", "bad", nil)
		began = time.Now()
		for range 300 {
			if _, err := m.CallServerTool(t.Context(), "s", "bad", nil); !errors.Is(err, supervisor.ErrDenied) {
				t.Fatal(err)
			}
		}
		if _, err := m.CallServerTool(t.Context(), "s", "x", nil); err != nil || time.Since(began) != 0 {
			t.Errorf("a call after %v: %v", time.Since(began), err)
		}
		if err := m.Close(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
		close(release)
		synctest.Wait()
		if n := len(*h.lines); n != 258 || !strings.HasPrefix((*h.lines)[n-1], "lines of the log were lost: Config.Logger did not return lines=") {
			t.Errorf("%d lines, the last one %s", n, (*h.lines)[n-1])
		}
	})
}

// TestALineIsWrittenBeforeWhatFollows: a program finds in its log what a call has logged when the call returns.
func TestALineIsWrittenBeforeWhatFollows(t *testing.T) {
	release := make(chan struct{})
	close(release)
	h := blockingHandler{release, new(sync.Mutex), new([]string)}
	m := supervisortest.StartConfig(t, supervisor.Config{
		Logger: supervisor.NewSlogLogger(h),
		Allow:  func(context.Context, *supervisor.Tool, json.RawMessage) error { panic("ouch") },
	}, supervisortest.NewServer("s", supervisortest.Echo("x")))
	for i := range 100 {
		_, _ = m.CallServerTool(t.Context(), "s", "x", nil)
		h.mu.Lock()
		n := 0
		for _, line := range *h.lines {
			if strings.HasPrefix(line, "Config.Allow panicked") {
				n++
			}
		}
		h.mu.Unlock()
		if n != i+1 {
			t.Fatalf("%d lines after %d calls", n, i+1)
		}
	}
}
