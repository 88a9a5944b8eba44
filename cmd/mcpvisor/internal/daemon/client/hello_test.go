package client

import (
	"bufio"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// A daemon that does not confirm the view would show everything, so nothing is passed on to it.
func TestADaemonWithoutViewsIsRefused(t *testing.T) {
	for view, answer := range map[string]string{"": `{"protocol":1,"ready":true}`, "docs": `{"protocol":1,"ready":true,"view":"docs"}`,
		"other": `{"protocol":1,"ready":true,"view":"docs"}`, "none": `{"protocol":1,"ready":true}`} {
		near, far := net.Pipe()
		go func() { // it ends with the pipe
			r := bufio.NewReader(far)
			for _, line := range []string{`{"protocol":1}`, answer} {
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
				_, _ = io.WriteString(far, line+"\n")
			}
		}()
		d := dialer{view: view, lookup: func(string) (string, bool) { return "", false }}
		_, _, err := d.introduce(near)
		if wanted := view == "" || view == "docs"; wanted != (err == nil) || !wanted && !strings.Contains(err.Error(), "knows no views") {
			t.Errorf("view %q, answer %s: %v", view, answer, err)
		}
		_ = near.Close()
	}
}

// TestARefusalBeforeTheGreetingIsRead: a daemon without descriptors cannot see who has connected, and refuses before it reads. A peer
// that greeted it then got "write: broken pipe", and a bridge took that for a daemon that was just ending.
func TestARefusalBeforeTheGreetingIsRead(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	daemon, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(WriteLine(daemon, Welcome{Protocol: Protocol, Error: "too many open files", Short: true}), daemon.Close())
	if err != nil {
		t.Fatal(err)
	}
	err = endDaemon(t.Context(), conn, control.DaemonLocation{})
	var refused *messages.Error
	if !errors.As(err, &refused) || refused.Text != "too many open files" || !IsShortage(err) {
		t.Errorf("the error is %v", err)
	}
}

// TestADaemonThatClosesTheConnectionIsNamed: mcpvisor down printed the error of the socket alone.
func TestADaemonThatClosesTheConnectionIsNamed(t *testing.T) {
	daemon, conn := net.Pipe()
	_ = daemon.Close()
	defer conn.Close()
	err := endDaemon(t.Context(), conn, control.DaemonLocation{Log: "daemon.log"})
	if err == nil || !strings.Contains(err.Error(), "the daemon of mcpvisor does not answer; see daemon.log") {
		t.Errorf("the error is %v", err)
	}
}
