package connect

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Otherwise the program that ends the command must kill it.
func TestAnAgentThatDoesNotReadKeepsConnectForAMomentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, agent := io.Pipe()
		unread, out := io.Pipe()
		c := &carrier{in: in, out: out, warn: func(string) {},
			dial: func(context.Context, string, time.Time) (net.Conn, *bufio.Reader, []string, error) {
				return nil, nil, nil, errors.New("there is no daemon")
			}}
		done := make(chan error, 1)
		go func() { done <- c.carryUntilEnd(ctx) }()
		if _, err := io.WriteString(agent, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the refusal is being written
		begun := time.Now()
		cancel()
		if err := <-done; err != nil || time.Since(begun) != lastWrite {
			t.Errorf("it ended after %s with %v", time.Since(begun), err)
		}
		_ = unread.Close()
		_ = agent.Close()
	})
}
