//go:build unix

package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
)

func TestTheServersEndIsOurs(t *testing.T) {
	got, exit := runProxy(t, newStdioProxy(t, "exit:7"), strings.NewReader(""))
	if exit.Code != 7 || got != "last words, without\nan end" {
		t.Errorf("%+v, %q", exit, got)
	}
	if _, exit = runProxy(t, newStdioProxy(t, "signal"), strings.NewReader("")); exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", exit)
	}
	s := newStdioProxy(t, "cat")
	s.Command, s.In, s.Out = "no-such-command-of-mcpvisor", strings.NewReader(""), io.Discard
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be found") {
		t.Errorf("a missing command: %v", err)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	s := newStdioProxy(t, "stubborn")
	signals := make(chan os.Signal, 1)
	s.Signals = signals
	in, out := openPipe(t), &awaitingBuffer{want: "ready", seen: make(chan struct{})}
	s.In, s.Out = in, out
	done := make(chan proxy.Exit, 1)
	go func() {
		exit, _ := s.Run(context.Background())
		done <- exit
	}()
	<-out.seen
	signals <- syscall.SIGTERM
	if exit := <-done; exit.Code != 9 || !strings.Contains(out.String(), "asked") {
		t.Errorf("%+v, %q", exit, out.String())
	}
}

// openPipe is an input that stays open until the test ends.
func openPipe(t *testing.T) *io.PipeReader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

type awaitingBuffer struct {
	safeBuffer
	want string
	once sync.Once
	seen chan struct{}
}

func (w *awaitingBuffer) Write(p []byte) (int, error) {
	n, err := w.safeBuffer.Write(p)
	if strings.Contains(w.String(), w.want) {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}

// TestNothingIsLeftBehind: a child of the server that holds its output and hears no SIGTERM ends with it.
func TestNothingIsLeftBehind(t *testing.T) {
	s := newStdioProxy(t, "parent")
	s.Grace = 100 * time.Millisecond
	got, exit := runProxy(t, s, strings.NewReader(""))
	var pid int
	if _, err := fmt.Sscan(got, &pid); err != nil || exit != (proxy.Exit{}) {
		t.Fatalf("%q, %+v", got, exit)
	}
	for deadline := time.Now().Add(bound); syscall.Kill(pid, 0) == nil && !isZombie(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// isZombie reports whether a process only waits to be reaped by somebody else.
func isZombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(b, []byte(") Z "))
}

const (
	askList = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
	askEcho = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}` + "\n"
	askAdd  = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add"}}` + "\n"
	hasList = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"},{"name":"add"}]}}` + "\n"
	hasEcho = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"echo"}]}}` + "\n"
	hasAdd  = `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"add"}]}}` + "\n"
)

// TestFaults: what the rule says breaks, and only that.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		rule, want string
		exit       proxy.Exit
	}{
		{"tool-error tool=echo text=no", hasList +
			`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}` + "\n" + hasAdd, proxy.Exit{}},
		{"hang-call tool=add", hasList + hasEcho, proxy.Exit{}},
		{"black-hole on=tools/list", hasEcho + hasAdd, proxy.Exit{}},
		{"duplicate-response tool=echo", hasList + hasEcho + hasEcho + hasAdd, proxy.Exit{}},
		{"latency by=50ms tool=echo", hasList + hasAdd + hasEcho, proxy.Exit{}},
		{"latency by=50ms on=tools/list direction=server", hasEcho + hasAdd + hasList, proxy.Exit{}},
		{"slow-drip chunk=7 every=1ms tool=echo", hasList + hasEcho + hasAdd, proxy.Exit{}},
		{"die-mid-call tool=echo code=5", hasList, proxy.Exit{Code: 5}},
		{"answer-and-die tool=echo signal=TERM", hasList + hasEcho, proxy.Exit{Signal: syscall.SIGTERM}},
		{"half-line tool=echo code=3 then=exit", hasList + hasEcho[:(len(hasEcho)-1)/2], proxy.Exit{Code: 3}},
		{"drop tool=echo", hasList + hasAdd, proxy.Exit{}},
		{"drop tool=echo direction=server", hasList + hasAdd, proxy.Exit{}},
		{"cut tool=echo", hasList + hasEcho[:(len(hasEcho)-1)/2], proxy.Exit{}},
		{"close tool=echo direction=client", hasList, proxy.Exit{}},
		{"crash tool=echo", "*", proxy.Exit{Code: 1}},
		{"huge-line size=1000 tool=echo", hasList + strings.Replace(hasEcho, "}}\n", `},"chaos":"`+
			strings.Repeat("x", 1000-len(hasEcho)+1-len(`,"chaos":""`))+"\"}\n", 1) + hasAdd, proxy.Exit{}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := newStdioProxy(t, "server", c.rule)
			got, exit := runProxy(t, s, strings.NewReader(askList+askEcho+askAdd))
			if got != c.want && c.want != "*" || exit != c.exit {
				t.Errorf("exit %+v, want %+v\n got %q\nwant %q", exit, c.exit, got, c.want)
			}
			if s.Tally.Faults() == 0 {
				t.Error("nothing was counted")
			}
		})
	}
}
