package daemon

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
)

// Otherwise the daemon could not end as long as that agent lives, and no other one could begin. In real time, because a write that waits
// for another one waits for a mutex, during which virtual time stands still.
func TestAnAgentThatDoesNotReadKeepsNoDaemonFromEnding(t *testing.T) {
	agent, conn := net.Pipe()
	defer agent.Close()
	b := &bridgeConn{Conn: conn}
	if !b.beginServing(true) {
		t.Fatal("it is not served")
	}
	written := make(chan error, 1)
	go func() {
		_, err := b.Write([]byte("an answer that nobody reads\n"))
		written <- err
	}()
	if _, err := agent.Read(make([]byte, 1)); err != nil { // the write has begun
		t.Fatal(err)
	}
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		b.announceEnd(client.DrainLine, time.Now().Add(50*time.Millisecond))
	}()
	for _, ended := range []<-chan struct{}{announced, closedBy(written, os.ErrDeadlineExceeded)} {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("a write to an agent that does not read has no end")
		}
	}
}

// closedBy returns a channel that is closed when the other one has an error of this kind.
func closedBy(errs <-chan error, want error) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		if errors.Is(<-errs, want) {
			close(ended)
		}
	}()
	return ended
}

// An end that comes while a bridge is greeted: its deadlines stay, and no message is passed on.
func TestABridgeThatComesAtTheEndIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := net.Pipe()
		b := &bridgeConn{Conn: conn}
		b.announceEnd(client.DrainLine, time.Now().Add(drainTime))
		if b.beginServing(true) {
			t.Error("messages are passed on")
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading ended with %v", err)
		}
	})
}

// A bridge whose agent reads gets the announcement, and the answers that follow it.
func TestTheEndIsAnnouncedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, conn := net.Pipe()
		b := &bridgeConn{Conn: conn}
		b.beginServing(true)
		go func() {
			b.announceEnd(client.StopLine, time.Now().Add(drainTime))
			_, _ = b.Write([]byte("answer\n"))
			_ = b.Close()
		}()
		r := bufio.NewScanner(agent)
		var got []string
		for r.Scan() {
			got = append(got, r.Text())
		}
		if len(got) != 2 || got[0] != client.StopLine || got[1] != "answer" {
			t.Errorf("the agent's side has %q", got)
		}
	})
}
