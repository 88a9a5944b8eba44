package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Run checks the servers one after the other. The error is that of ctx; the report holds what was found until then.
func Run(ctx context.Context, o Options) (Report, error) {
	o = o.withDefaults()
	r := Report{Started: time.Now()}
	for _, name := range slices.Sorted(maps.Keys(o.Servers)) {
		if ctx.Err() != nil {
			break
		}
		r.Servers = append(r.Servers, one(ctx, o, name, o.Servers[name]))
	}
	r.Took = time.Since(r.Started)
	return r, ctx.Err()
}

// subject is the server that is being checked, and what is known of it by now.
type subject struct {
	o    Options
	name string
	spec messages.Spec
	kind messages.TransportKind
	out  Server

	era     messages.Era
	version string
	// tools is the list of the last start, as it is offered; first is the raw list of the first conversation.
	tools session.ToolList
	first []entry
	// shared is the conversation of the checks that leave the server as it was.
	shared *conversation
	// noises, noise and stderr are what all conversations together saw on the side.
	noises int
	noise  string
	stderr int
}

// one checks one server.
func one(ctx context.Context, o Options, name string, spec messages.Spec) Server {
	s := &subject{o: o, name: name, spec: spec, kind: spec.Kind()}
	s.out = Server{Name: name, Transport: s.kind, Findings: []Finding{}}
	began := time.Now()
	s.look(ctx)
	s.out.Took = time.Since(began)
	s.out.Findings = sorted(s.out.Findings)
	for i := range s.out.Findings { // a server that cannot log in tends to say with what it tried
		f := &s.out.Findings[i]
		f.Text, f.Fix = messages.Line(spec.Hide(f.Text), 0), messages.Line(spec.Hide(f.Fix), 0)
	}
	return s.out
}

func (s *subject) look(ctx context.Context) {
	defer s.unshare()
	switch {
	case s.spec.Invalid != "":
		s.add("start", Fail, "its configuration cannot work: "+s.spec.Invalid, "mend its entry")
		return
	case s.spec.Hold != "":
		s.add("start", NotTried, "it waits for an approval", "look at the entry and run: mcpvisor approve "+s.name)
		return
	case s.spec.Disabled:
		s.add("start", NotTried, "it is disabled", "")
		return
	case s.kind == messages.SDK || s.kind == messages.ClaudeAIProxy:
		s.add("start", NotTried, fmt.Sprintf("a server of type %q is not reached from here", s.kind), "")
		return
	}
	if rule := s.o.Refusal(s.spec); rule != "" {
		s.add("start", NotTried, "the policy of this machine refuses it: "+rule, "")
		return
	}
	if !s.starts(ctx) {
		return
	}
	for _, step := range []struct {
		what string
		look func(context.Context)
	}{
		{"the handshake", s.handshake},
		{"its lists", s.lists},
		{"ping, unknown methods and broken lines", s.oddities},
		{"many requests at once", s.parallel},
		{"big messages", s.bigMessages},
		{"calls", s.calls},
		{"its end", func(context.Context) { s.unshare() }},
		{"HTTP", s.web},
		{"a kill", s.restart},
		{"its end", s.shutdown},
	} {
		if ctx.Err() != nil {
			return
		}
		s.o.Progress(s.name, step.what)
		step.look(ctx)
	}
	s.aside()
}

// titles of the findings.
var titles = map[string]string{
	"start": "start time", "protocol": "protocol version", "handshake": "unknown version", "probe": "question for the era",
	"noise": "standard output", "stderr": "standard error", "tools": "tool definitions", "list": "list twice",
	"pages": "pages of the list", "ping": "ping", "unknown-method": "unknown method", "malformed": "broken message",
	"second-initialize": "second initialize", "parallel": "requests at once", "big-message": "big message", "call": "call",
	"call-parallel": "calls at once", "cancel": "cancellation", "restart": "restart after a kill",
	"list-restart": "list after restart", "session": "unknown session", "session-end": "end of session",
	"stream": "event stream", "origin": "foreign origin", "content-type": "content types", "version-header": "version header",
	"tls": "encryption", "shutdown": "end of input", "signal": "SIGTERM", "children": "left behind",
}

// add notes a finding. measured are pairs of a name and a number.
func (s *subject) add(id string, v Verdict, text, fix string, measured ...any) {
	kind, of, _ := strings.Cut(id, " ")
	f := Finding{ID: id, Title: strings.TrimSpace(titles[kind] + " " + messages.Line(of, 40)), Verdict: v, Text: text, Fix: fix}
	for i := 0; i+1 < len(measured); i += 2 {
		if f.Measured == nil {
			f.Measured = map[string]float64{}
		}
		name := fmt.Sprint(measured[i])
		switch n := measured[i+1].(type) {
		case time.Duration:
			f.Measured[name] = float64(n.Microseconds()) / 1000
		case int:
			f.Measured[name] = float64(n)
		}
	}
	s.out.Findings = append(s.out.Findings, f)
}

// transport is how the server is reached. Every process gets what the manager would give it.
func (s *subject) transport() transports.Transport {
	web := transports.HTTPConfig{
		URL: s.spec.URL, Headers: s.spec.Headers, FallbackSSE: s.spec.FallbackSSE, MaxMessage: s.spec.MaxMessage,
		PlainCredentials: s.spec.AllowPlainHTTP, Client: s.client(),
	}
	switch s.kind {
	case messages.SSE:
		return transports.NewSSE(web)
	case messages.WebSocket:
		return transports.NewWebSocket(transports.WebSocketConfig{
			URL: web.URL, Headers: web.Headers, MaxMessage: web.MaxMessage, PlainCredentials: web.PlainCredentials,
			Client: web.Client,
		})
	case messages.HTTP:
		return transports.NewHTTP(web)
	default:
		return transports.NewStdio(transports.StdioConfig{
			Command: s.spec.Command, Args: s.spec.Args, Env: s.env(), Dir: s.spec.Cwd, Grace: s.o.Grace,
			MaxMessage: s.spec.MaxMessage, StderrTail: stderrMost, Guard: s.o.Guard, Secrets: s.spec.Secrets(),
		})
	}
}

// stderrMost is how much of standard error is counted.
const stderrMost = 1 << 20

func (s *subject) env() []string {
	inherit := s.o.InheritEnv
	if s.spec.InheritEnv != nil {
		inherit = *s.spec.InheritEnv
	}
	env, _ := transports.ChildEnv(os.Environ(), s.spec.Env, inherit)
	return env
}

func (s *subject) connectTimeout() time.Duration {
	for _, d := range []time.Duration{s.o.Connect, time.Duration(s.spec.ConnectTimeout)} {
		if d > 0 {
			return d
		}
	}
	return 30 * time.Second
}

// converse opens a conversation after the handshake. The error says what the server did.
func (s *subject) converse(ctx context.Context) (*conversation, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connectTimeout())
	defer cancel()
	c, err := open(ctx, s.transport())
	if err != nil {
		return nil, err
	}
	if _, err := c.greet(ctx, s.connectTimeout(), s.era, s.version); err != nil {
		s.leave(c)
		return nil, err
	}
	return c, nil
}

// leave ends a conversation and keeps what was seen on the side.
func (s *subject) leave(c *conversation) {
	s.stderr = max(s.stderr, len(c.conn.Info().StderrTail))
	c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.noises += c.noises
	if len(c.noise) > 0 && s.noise == "" {
		s.noise = c.noise[0]
	}
}

// said is what a server did in the place of an answer, for a sentence that begins with "it".
func said(err error) string {
	var n *noAnswer
	if errors.As(err, &n) {
		return n.text
	}
	return "could not be reached (" + messages.Line(err.Error(), 200) + ")"
}

// ms writes a duration for a sentence.
func ms(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
