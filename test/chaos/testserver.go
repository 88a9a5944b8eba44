package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/score"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// ServerTarget is the server that [TestServer] tests; [Spec], [Handler] and [InProcess] make one.
type ServerTarget struct {
	spec    messages.Spec
	handler http.Handler
	// ended is how the function of InProcess ended first by itself; nil for other targets.
	ended *functionEnd
	// problem is why nothing can be tested; empty for none.
	problem string
}

// Spec is a server as a configuration describes it: a command, or a URL.
func Spec(s messages.Spec) ServerTarget {
	if s.Type == "" {
		if s.Type = messages.Stdio; s.URL != "" {
			s.Type = messages.HTTP
		}
	}
	if s.Command == "" && s.URL == "" {
		return ServerTarget{problem: "chaos.Spec: the spec has no Command and no URL"}
	}
	return ServerTarget{spec: s}
}

// Handler is a server over streamable HTTP in this process. Requests come for the path /mcp.
func Handler(h http.Handler) ServerTarget {
	if f, ok := h.(http.HandlerFunc); h == nil || ok && f == nil {
		return ServerTarget{problem: "chaos.Handler: the handler is nil"}
	}
	return ServerTarget{handler: h, spec: messages.Spec{Type: messages.HTTP}}
}

// InProcess is a server that is a function of this process, as supervisor.Config.InProcess and packages transports/gosdk and
// transports/mcpgo have it; each connection is one call. What only processes and sockets can do wrong is not tried. Findings call it, and
// a [Handler], "the server of this test": the loopback address behind it is TestServer's.
func InProcess(serve func(ctx context.Context, peer inprocess.Peer) error) ServerTarget {
	if serve == nil {
		return ServerTarget{problem: "chaos.InProcess: the function is nil"}
	}
	ended := &functionEnd{}
	return ServerTarget{handler: frameServer{serve, ended}, ended: ended, spec: messages.Spec{Type: messages.WebSocket}}
}

// TestServer finds out how resilient a server is: it starts or dials it several times, does to it what goes wrong in practice, and
// makes a subtest of each finding, with what was seen and what to do about it. A warning is logged. Tools are called only if [Calls]
// names them, or if the server says that they are read-only. A server that cannot be tested, as one that is disabled or wants credentials,
// fails.
//
//	func TestOurServer(t *testing.T) {
//		chaos.TestServer(t, chaos.Spec(messages.Spec{Command: "our-server"}))
//	}
//
// It runs in real time: a command is started about 12 times in turn, and never twice at once. The command over it is mcpvisor chaos check.
func TestServer(t *testing.T, target ServerTarget, options ...Option) {
	t.Helper()
	s := newSettings(t, "TestServer", options)
	switch {
	case target.problem != "":
		s.refuse(t, target.problem)
	case target.handler == nil && target.spec.Type == "":
		s.refuse(t, "chaos.TestServer: there is no server: make one with chaos.Spec, chaos.Handler or chaos.InProcess")
	}
	if target.handler != nil {
		target.spec.URL = serveHandler(t, target)
	}
	target.spec.Trusted = true // what its owner says of it counts: read-only tools are called
	o := check.Options{Servers: map[string]messages.Spec{"server": target.spec}, Calls: map[string][]check.Call{}}
	for _, text := range s.calls {
		c, err := check.ParseCall(text)
		if err != nil {
			s.refuse(t, fmt.Sprintf("chaos.Calls: %v", err))
		}
		o.Calls["server"] = append(o.Calls["server"], c)
	}
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var ids, found []string
	played := 0
	for _, server := range r.Servers {
		for _, f := range server.Findings {
			name := fmt.Sprintf("%s (%s)", f.ID, f.Verdict)
			if ids = append(ids, f.ID); f.ID == startID && f.Verdict != check.Pass {
				name += ": " + target.hideAddress(messages.Printable(f.Text))
			}
			if found = append(found, name); s.chosen(f.ID, strings.ReplaceAll(f.ID, " ", "_")) {
				played++
				t.Run(f.ID, func(t *testing.T) { s.judgeFinding(t, target, f) })
			}
		}
	}
	if played == 0 {
		s.refuse(t, fmt.Sprintf("nothing was tested: chaos.Only: %s. There are %s", score.NoMatchText(fmt.Sprint(s.only), "finding", ids), strings.Join(found, ", ")))
	}
}

// startID is the finding that comes first. A server that does not start has no other.
const startID = "start"

// judgeFinding is the subtest of one finding.
func (s *settings) judgeFinding(t *testing.T, target ServerTarget, f check.Finding) {
	text := messages.Printable(fmt.Sprintf("%s: %s", f.Title, f.Text))
	if f.Fix != "" {
		text += "; " + messages.Printable(f.Fix)
	}
	// Findings speak of the command's flag, and here is none.
	text = strings.ReplaceAll(text, check.CallFlag("server"), "chaos.Calls(`TOOL {json}`)")
	text = target.hideAddress(text)
	if f.ID == startID && f.Verdict == check.Fail {
		text += target.ended.describe()
	}
	if f.Verdict == check.Warn {
		text = "warning: " + text
	}
	if f.ID == startID && f.Verdict == check.NotTried {
		f.Verdict, text = check.Fail, "nothing was tested: "+text // a test that has shown nothing does not pass
	}
	c := report.JUnitCase{Group: filepath.Dir(t.Name()), Name: filepath.Base(t.Name())}
	switch f.Verdict {
	case check.Fail:
		c.Failure = text
	case check.NotTried:
		c.Skipped = text
	case check.Pass, check.Warn:
	}
	s.note(c)
	switch f.Verdict {
	case check.Fail:
		t.Error(text)
	case check.NotTried:
		t.Skip(text)
	default:
		t.Log(text)
	}
}

// hideAddress replaces the address under which a handler or a function was served by what it is to its owner, who has given none.
func (target ServerTarget) hideAddress(text string) string {
	if target.handler == nil {
		return text
	}
	const own = "the server of this test"
	origin, _ := strings.CutSuffix(target.spec.URL, "/mcp")
	_, host, _ := strings.Cut(origin, "://")
	return strings.NewReplacer(target.spec.URL, own, origin, own, host, own).Replace(text)
}

// serveHandler serves the handler of a target on a loopback port until the end of the test, and returns its URL.
func serveHandler(t *testing.T, target ServerTarget) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: target.handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // it ends with Close, and always returns an error
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	scheme := "http"
	if target.spec.Type == messages.WebSocket {
		scheme = "ws"
	}
	return scheme + "://" + l.Addr().String() + "/mcp"
}

// functionEnd is how the function of InProcess ended first by itself.
type functionEnd struct {
	mu   sync.Mutex
	text string
}

func (e *functionEnd) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.text == "" {
		e.text = text
	}
}

// describe is for the end of a finding; empty where there is nothing to say.
func (e *functionEnd) describe() string {
	if e == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.text == "" {
		return ""
	}
	return "; the function " + e.text
}

// frameServer gives each connection over WebSocket to a server of this process: one message per frame.
type frameServer struct {
	serve func(ctx context.Context, peer inprocess.Peer) error
	ended *functionEnd
}

// ServeHTTP implements http.Handler. It returns when the server or the client has ended.
func (s frameServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return // Accept has answered
	}
	c.SetReadLimit(64 << 20)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	status := websocket.StatusNormalClosure
	if err := s.serveOnce(ctx, framePeer{c}); err != nil {
		status = websocket.StatusInternalError
	}
	_ = c.Close(status, "")
}

// serveOnce runs the function for one connection. Its panic ends the connection and not the test, as in a manager.
func (s frameServer) serveOnce(ctx context.Context, peer inprocess.Peer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panicked: %s", messages.Line(fmt.Sprint(v), 200))
			s.ended.note(err.Error())
		} else if err != nil && ctx.Err() == nil {
			s.ended.note("returned: " + messages.Line(err.Error(), 200))
		}
	}()
	return s.serve(ctx, peer)
}

// framePeer implements inprocess.Peer over a WebSocket.
type framePeer struct{ conn *websocket.Conn }

// Read implements inprocess.Peer.
func (p framePeer) Read(ctx context.Context) ([]byte, error) {
	_, body, err := p.conn.Read(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, io.EOF
	}
	return body, err
}

// Write implements inprocess.Peer.
func (p framePeer) Write(ctx context.Context, msg []byte) error {
	if err := p.conn.Write(ctx, websocket.MessageText, msg); err != nil {
		return errors.Join(io.ErrClosedPipe, err)
	}
	return nil
}
