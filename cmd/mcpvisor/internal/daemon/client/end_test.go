package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// TestADaemonThatDoesNotAnswerIsToldSo asks a daemon to end that is suspended: the error says what to do after the time of a greeting, and an
// interrupt ends the wait before.
func TestADaemonThatDoesNotAnswerIsToldSo(t *testing.T) {
	for _, c := range []struct {
		name          string
		after, within time.Duration
	}{{"it is silent", time.Hour, GreetingTime}, {"the person interrupts", time.Second, time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				daemon, conn := net.Pipe()
				defer daemon.Close()
				defer conn.Close()
				ctx, cancel := context.WithTimeout(t.Context(), c.after)
				defer cancel()
				begun := time.Now()
				err := endDaemon(ctx, conn, control.DaemonLocation{Log: "daemon.log"})
				if took := time.Since(begun); took != c.within {
					t.Errorf("it took %s", took)
				}
				want := "the daemon of mcpvisor does not answer; see daemon.log"
				if ctx.Err() != nil {
					want = ctx.Err().Error()
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// A daemon that ends in the moment in which it is asked to has ended. Before, its person was told that it does not answer, with exit code 1.
func TestADaemonThatEndsMeanwhileHasEnded(t *testing.T) {
	for _, c := range []struct {
		name  string
		says  []string // one answer for each connection, after which the daemon closes it; then no daemon is there
		there bool
	}{
		{"it is gone", []string{""}, false},
		{"the next one ends as well", []string{"", ""}, false},
		{"the next one is asked", []string{"", `{"draining":true}`}, true},
		{"it cuts its answer", []string{`{"drai`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "end") // the path of a socket is short
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			location := control.DaemonLocation{Socket: filepath.Join(dir, "s"), Log: "daemon.log"}
			socket, err := net.Listen("unix", location.Socket)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i, line := range c.says {
					conn, err := socket.Accept()
					if err != nil {
						t.Error(err)
						return
					}
					if i == len(c.says)-1 {
						_ = socket.Close()
					}
					_, _ = bufio.NewReader(conn).ReadString('\n')
					_, _ = io.WriteString(conn, line)
					if strings.HasSuffix(line, "}") {
						_, _ = io.WriteString(conn, "\n")
					}
					_ = conn.Close()
				}
			}()
			there, err := endAt(t.Context(), location)
			_ = socket.Close()
			<-done
			if err != nil || there != c.there {
				t.Errorf("there is a daemon: %t, and the error is %v", there, err)
			}
		})
	}
}
