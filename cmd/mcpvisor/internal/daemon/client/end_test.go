package client

import (
	"context"
	"net"
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
