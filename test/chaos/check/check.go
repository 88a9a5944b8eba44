package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/kinds"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Run checks the servers one after the other, in the order of their names. The error is that of ctx; the report holds what was
// found until then.
func Run(ctx context.Context, o Options) (Report, error) {
	o = o.withDefaults()
	r := Report{Started: time.Now()}
	for _, name := range slices.Sorted(maps.Keys(o.Servers)) {
		if ctx.Err() != nil {
			break
		}
		r.Servers = append(r.Servers, checkServer(ctx, o, name, o.Servers[name]))
	}
	r.Took = time.Since(r.Started)
	return r, ctx.Err()
}

// serverCheck is one server under check, and what is known of it so far. Only one goroutine uses it.
type serverCheck struct {
	o    Options
	name string
	spec messages.Spec
	kind messages.TransportKind
	out  Server

	// era and version are those of the first successful start; empty before.
	era     messages.Era
	version string
	// tools is the list of the last start with the unusable tools apart; first is the raw list of the first conversation.
	// Raw entries keep what the session drops, so that a check can name a tool that no client can use.
	tools session.ToolList
	first []toolEntry
	// shared is the conversation that several checks use one after the other; nil while none is open. strained is set once a check
	// has used it that may harm the server.
	shared   *rawClient
	strained bool
	// noiseCount is the number of lines on standard output that were no messages, noise the first of them, and stderr the
	// largest number of bytes on standard error in one conversation.
	// All three are sums over conversations, because a process that is started again prints its banner again.
	noiseCount int
	noise      string
	stderr     int
}

// checkServer checks one server and returns the findings in their order.
func checkServer(ctx context.Context, o Options, name string, spec messages.Spec) Server {
	s := &serverCheck{o: o, name: name, spec: spec, kind: spec.Kind()}
	s.out = Server{Name: name, Transport: s.kind, Findings: []Finding{}}
	began := time.Now()
	s.runChecks(ctx)
	s.out.Took = time.Since(began)
	s.out.Findings = sortFindings(s.out.Findings)
	// A server that cannot sign in tends to print the credentials that it tried.
	for i := range s.out.Findings {
		f := &s.out.Findings[i]
		f.Text, f.Fix = messages.Line(spec.RedactText(f.Text), 0), messages.Line(spec.RedactText(f.Fix), 0)
	}
	return s.out
}

// runChecks runs the checks in turn. The first start decides: without it there is nothing to talk to.
func (s *serverCheck) runChecks(ctx context.Context) {
	defer s.closeShared()
	switch {
	case s.spec.Invalid != "":
		s.addFinding("start", Fail, "its configuration cannot work: "+s.spec.Invalid, "mend its entry")
		return
	case s.spec.Hold != "":
		s.addFinding("start", NotTried, "it waits for an approval", "look at the entry and run: mcpvisor approve "+s.name)
		return
	case s.spec.Disabled:
		s.addFinding("start", NotTried, "it is disabled", "")
		return
	case s.kind == messages.ClaudeAIProxy || s.newTransport() == nil:
		s.addFinding("start", NotTried, fmt.Sprintf("a server of type %q is not reached from here", s.kind), "")
		return
	}
	if rule := s.o.Refusal(s.spec); rule != "" {
		s.addFinding("start", NotTried, "the policy of this machine refuses it: "+rule, "")
		return
	}
	// A refusal of the policy comes before the first start, because the check must not run what the machine forbids.
	if !s.checkStarts(ctx) {
		return
	}
	// Checks that may harm the server come after those that do not, and the kill of the process near the end. No two of them run at
	// once: a server that holds a lock, a port or a profile lives in one process at a time, and is healthy all the same.
	for _, step := range []struct {
		what string
		look func(context.Context)
	}{
		{"the handshake", s.checkHandshake},
		{"its lists", s.checkLists},
		{"ping and unknown methods", s.checkManners},
		{"many requests at once", s.checkParallel},
		{"calls", s.checkCalls},
		{"broken lines", s.checkOddities},
		{"big messages", s.checkBigMessages},
		{"its end", func(context.Context) { s.closeShared() }},
		{"HTTP", s.checkHTTP},
		{"a kill", s.checkRestart},
		{"its end", s.checkShutdown},
	} {
		if ctx.Err() != nil {
			return
		}
		s.o.Progress(s.name, step.what)
		step.look(ctx)
	}
	s.judgeOutput()
}

// titles maps the first word of a finding's ID to its title for people.
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

// addFinding records a finding. measured holds pairs of a name and a number; durations are recorded in milliseconds.
func (s *serverCheck) addFinding(id string, v Verdict, text, fix string, measured ...any) {
	kind, detail, _ := strings.Cut(id, " ")
	f := Finding{ID: id, Title: strings.TrimSpace(titles[kind] + " " + messages.Line(detail, 40)), Verdict: v, Text: text, Fix: fix}
	for i := 0; i+1 < len(measured); i += 2 {
		if f.Measured == nil {
			f.Measured = map[string]float64{}
		}
		// JSON consumers compare numbers of several runs: durations are milliseconds with three decimals, counts are counts.
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

// newTransport makes the transport that a manager would make for this server, with the same environment and limits.
func (s *serverCheck) newTransport() transports.Transport {
	return kinds.New(&s.spec, kinds.Options{
		Server: s.name, Grace: s.o.Grace, Client: s.httpClient(), InheritEnv: s.o.InheritEnv, Guard: s.o.Guard, StderrTail: stderrMost,
	})
}

// stderrMost is the number of bytes of standard error up to which they are counted.
const stderrMost = 1 << 20

// connectTimeout returns the time that one start may take: the option, else the spec's, else 30 s.
func (s *serverCheck) connectTimeout() time.Duration {
	for _, d := range []time.Duration{s.o.Connect, time.Duration(s.spec.ConnectTimeout)} {
		if d > 0 {
			return d
		}
	}
	return 30 * time.Second
}

// openClient opens a conversation and shakes hands in the server's known era. The error says what the server did.
func (s *serverCheck) openClient(ctx context.Context) (*rawClient, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connectTimeout())
	defer cancel()
	c, err := openRawClient(ctx, s.newTransport())
	if err != nil {
		return nil, err
	}
	if _, err := c.shakeHands(ctx, s.connectTimeout(), s.era, s.version); err != nil {
		s.closeClient(c)
		return nil, err
	}
	return c, nil
}

// closeClient ends a conversation and keeps its counts of noise and standard error.
func (s *serverCheck) closeClient(c *rawClient) {
	s.stderr = max(s.stderr, len(c.conn.Info().StderrTail))
	c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.noiseCount += c.noiseCount
	if len(c.noise) > 0 && s.noise == "" {
		s.noise = c.noise[0]
	}
}

// failureText describes what a server did instead of answering, for a sentence that begins with "it".
func failureText(err error) string {
	var n *noAnswerError
	if errors.As(err, &n) {
		return n.text
	}
	return "could not be reached (" + messages.Line(err.Error(), 200) + ")"
}

// durationText writes a duration for a sentence, with no more digits than it deserves.
func durationText(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
