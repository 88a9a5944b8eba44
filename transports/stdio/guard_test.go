//go:build unix

package stdio_test

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// guardFunc is a guard that does what the test says.
type guardFunc func(pgid int) (release func())

func (g guardFunc) Watch(pgid int) func() { return g(pgid) }

// TestAGuardThatDoesNotWatch: a guard that panics, ends its goroutine or does not return fails the start with a typed error, and leaves no
// process behind that nobody watches. A panic was once a process that nobody ended, and a Watch that blocked held the attempt for ever.
func TestAGuardThatDoesNotWatch(t *testing.T) {
	stuck, released := make(chan struct{}), make(chan struct{}, 2)
	for name, c := range map[string]struct {
		watch func() (release func())
		class messages.Class
	}{
		"panics":             {func() func() { panic("ouch") }, messages.ClassPanic},
		"ends its goroutine": {func() func() { runtime.Goexit(); return nil }, messages.ClassPanic},
		"does not return":    {func() func() { <-stuck; return func() { released <- struct{}{} } }, messages.ClassTimeout},
	} {
		for way, start := range map[string]func(ctx context.Context, cfg stdio.Config) error{
			"a server": func(ctx context.Context, cfg stdio.Config) error {
				_, err := stdio.New(cfg).Dial(ctx, &transporttest.Recorder{})
				return err
			},
			"a helper": func(ctx context.Context, cfg stdio.Config) error {
				_, err := stdio.Output(ctx, cfg, 1000)
				return err
			},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				groups := make(chan int, 1)
				cfg := asRole("deaf")
				cfg.Guard = guardFunc(func(pgid int) func() { groups <- pgid; return c.watch() })
				ctx, cancel := context.WithCancel(t.Context())
				if c.class == messages.ClassTimeout {
					ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
				}
				defer cancel()
				err := start(ctx, cfg)
				var e *transports.Error
				if !errors.As(err, &e) || e.Class != c.class {
					t.Errorf("%#v", err)
				}
				if pgid := <-groups; !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
					t.Errorf("the process group %d is left", pgid)
				}
			})
		}
	}
	// What the guard watches in the end is released: of the server, and of the helper.
	close(stuck)
	for range 2 {
		select {
		case <-released:
		case <-time.After(childBound):
			t.Fatal("the late watch was not released")
		}
	}
}

// TestAGuardThatCannotRelease: a connection ends, and nothing else, whatever the function does that Watch returned. Its panic once ended
// the program.
func TestAGuardThatCannotRelease(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	for name, release := range map[string]func(){
		"panics":             func() { panic("ouch") },
		"ends its goroutine": runtime.Goexit,
		"does not return":    func() { <-stuck },
		"is nil":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := asRole("echo")
			cfg.Grace = 100 * time.Millisecond
			cfg.Guard = guardFunc(func(int) func() { return release })
			startServer(t, cfg).close()
			if out, err := stdio.Output(t.Context(), func() stdio.Config {
				helper := asRole("unfinished:done")
				helper.Guard = cfg.Guard
				return helper
			}(), 1000); string(out) != "done" || err != nil {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}
