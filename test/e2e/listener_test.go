package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// serverProcess is somebody else's server, listening on a loopback port in a process group of its own. It can be killed and
// started again on the same port.
type serverProcess struct {
	t       *testing.T
	port    int
	command func(port int) *exec.Cmd
	cmd     *exec.Cmd
	reaped  chan struct{}
}

// startServer starts one and ends it with the test.
func startServer(t *testing.T, command func(port int) *exec.Cmd) *serverProcess {
	t.Helper()
	l := &serverProcess{t: t, port: freePort(t), command: command}
	l.startProcess()
	t.Cleanup(l.killProcess)
	return l
}

// freePort is a port without a listener. Another process may take it before it is used: that is rare, and loud.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (l *serverProcess) startProcess() {
	l.t.Helper()
	l.cmd = l.command(l.port)
	out := &tailBuffer{}
	l.cmd.Stdout, l.cmd.Stderr = out, out
	ownGroup(l.cmd)
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.reaped = make(chan struct{})
	go func(cmd *exec.Cmd, reaped chan struct{}) {
		defer close(reaped)
		_ = cmd.Wait() // it is killed
	}(l.cmd, l.reaped)
	if !isEventually(bound, func() bool {
		c, err := net.DialTimeout("tcp", l.address(), time.Second)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}) {
		l.t.Fatalf("%v does not listen on %s:\n%s", l.cmd.Args, l.address(), out)
	}
}

// killProcess ends the server as kill -9 does, and everything that it started.
func (l *serverProcess) killProcess() {
	killGroup(l.cmd)
	<-l.reaped
}

func (l *serverProcess) address() string        { return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port)) }
func (l *serverProcess) url(path string) string { return "http://" + l.address() + path }

// everythingServer is npm's server-everything as "sse" or "streamableHttp".
func everythingServer(npm *peers.Servers, kind string) func(port int) *exec.Cmd {
	return func(port int) *exec.Cmd {
		command, args := npm.Command(peers.Everything, kind)
		cmd := exec.Command(command, args...)
		cmd.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
		return cmd
	}
}

// goSDKServer is the Go SDK's everything-server over streamable HTTP.
func goSDKServer(path, stateless string) func(port int) *exec.Cmd {
	return func(port int) *exec.Cmd {
		return exec.Command(path, "-http", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), "-stateless="+stateless)
	}
}

// goodWebServer is web.Good in a process of its own, played by this test binary.
func goodWebServer(port int) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err) // no system that we know refuses that
	}
	return exec.Command(self, goodWebRole, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

const goodWebRole = "e2e-good-web"

func init() {
	roles[goodWebRole] = func(args []string) int {
		s := &http.Server{Addr: args[0], Handler: web.Good(), ReadHeaderTimeout: bound}
		fmt.Fprintln(os.Stderr, s.ListenAndServe())
		return 1
	}
}

// tailBuffer keeps the last of what is written to it.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b = append(b.b, p...)
	b.b = b.b[max(0, len(b.b)-8<<10):]
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.b)
}
