package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Restart is the command of a plan by which the client of a server is closed, and dialled anew.
const Restart = "reconnect"

// target is one server of a day with its client.
type target struct {
	day    *day
	plan   scenario.Server
	server *performer.Server
	reach  *Server
	wire   *wire

	// mu guards client, which is nil until a dial has succeeded, and opened, which counts the openings.
	mu     sync.Mutex
	client Client
	opened int
	// dialError is the last error of a dial.
	dialError string
}

func newTarget(d *day, s scenario.Server, server *performer.Server) *target {
	t := &target{day: d, plan: s, server: server}
	t.wire = &wire{name: s.Name, plan: s, now: d.elapsedTime, report: t.reportBreach, cancelled: d.watch.noteCancel}
	t.reach = &Server{Name: s.Name, open: t.openStream, HTTP: &http.Client{Transport: noNetwork{}}}
	if s.Kind != messages.Stdio {
		t.reach.URL, t.reach.HTTP = server.Spec().URL, server.HTTPClient()
		t.reach.HTTP.Transport = &wireTransport{next: t.reach.HTTP.Transport, wire: t.wire, flips: slices.ContainsFunc(d.plan.Faults, func(f scenario.PlannedFault) bool { return f.Fault == "era-flip" })}
	}
	return t
}

// noNetwork is what a client finds who sends requests to a server over stdio.
type noNetwork struct{}

// RoundTrip implements http.RoundTripper.
func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("this server speaks stdio: Open starts it, and URL is empty")
}

// closeNetwork closes the idle connections of a server over HTTP.
func (t *target) closeNetwork() {
	t.reach.HTTP.CloseIdleConnections()
}

// reportBreach records what a client has done against the protocol; id is that of the check.
func (t *target) reportBreach(id, text string) {
	t.day.rec.Add(history.Event{Side: history.Harness, Kind: history.Violation, Server: t.plan.Name, Name: id, Text: text})
}

// openStream opens the server for the client. A client that opens it without a pause would keep the day in one instant for ever, so
// that every hundredth opening takes a second.
func (t *target) openStream(ctx context.Context) (io.ReadWriteCloser, error) {
	if t.plan.Kind != messages.Stdio {
		return nil, fmt.Errorf("this server speaks HTTP, at %s: send requests with HTTP", t.reach.URL)
	}
	t.mu.Lock()
	t.opened++
	slow := t.opened%100 == 0
	t.mu.Unlock()
	if slow {
		time.Sleep(time.Second)
	}
	stream, err := t.server.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	return t.wire.watchStream(stream), nil
}

// errNoClient is the error of a dial that returned nothing.
var errNoClient = errors.New("the dial returned neither a client nor an error")

// dialClient dials until a dial has succeeded or the day has ended.
func (t *target) dialClient() {
	for t.day.elapsedTime() < t.day.plan.End {
		ctx, cancel := context.WithTimeout(context.Background(), dialTime)
		c, err := t.day.dial(ctx, t.reach)
		cancel()
		if err == nil && c == nil {
			err = errNoClient
		}
		if err == nil {
			t.mu.Lock()
			t.client = c
			t.mu.Unlock()
			return
		}
		t.mu.Lock()
		t.dialError = messages.Line(err.Error(), 160)
		t.mu.Unlock()
		time.Sleep(2 * time.Second)
	}
}

// restartClient closes the client in the middle of the day, as a program does that is started again, and dials anew. It does nothing
// while no dial has succeeded.
func (t *target) restartClient(command int) {
	t.mu.Lock()
	c := t.client
	t.client = nil
	t.mu.Unlock()
	if c == nil {
		return
	}
	e := history.Event{Side: history.Owner, Kind: history.Command, Server: t.plan.Name, Command: command, Method: "close and dial anew"}
	t.day.rec.Add(e)
	e.Kind = history.Done
	if err := c.Close(); err != nil {
		e.Text = messages.Line(err.Error(), 200)
	}
	t.day.rec.Add(e)
	t.dialClient()
}

// currentClient returns the client, nil before a dial has succeeded.
func (t *target) currentClient() Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.client
}

// makeCall makes one call and records how it ends.
func (t *target) makeCall(planned load.Call) {
	d, c := t.day, t.currentClient()
	// A scenario that bounds no call, as one that was made smaller, leaves it to the server's own timeout.
	timeout := cmp.Or(planned.Stream.Timeout, t.plan.CallTimeout)
	begin := history.Event{Side: history.Caller, Kind: history.Call, Server: t.plan.Name, Call: planned.ID, Tool: planned.Stream.Tool,
		Deadline: d.elapsedTime() + timeout}
	d.rec.Add(begin)
	end := begin
	end.Kind, end.Deadline = history.End, 0
	if c == nil {
		end.Outcome, end.Text = messages.OutcomeNotSent, t.describeNoDial()
		d.rec.Add(end)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	defer d.watch.begin(d, t, planned, cancel)()
	began := time.Now()
	text, err := t.callTool(ctx, c, planned)
	end.Took = time.Since(began)
	var result struct {
		Call        string
		Conn, Value int
	}
	switch {
	case err == nil && json.Unmarshal([]byte(text), &result) == nil && result.Call != "":
		end.Outcome, end.Conn, end.Value, end.ID = messages.OutcomeResult, result.Conn, result.Value, result.Call
	case err == nil: // a tool that failed, or one whose result a fault has changed
		end.Outcome, end.Text = messages.OutcomeRejected, fmt.Sprintf("Call returned %q and no error, and the server's result is a text with the call's id", messages.Line(text, 100))
	default:
		end.Outcome, end.Text = messages.OutcomeUnknown, messages.Line(err.Error(), 200)
		if k, ok := c.(OutcomeKnower); ok && k.NotSent(err) {
			end.Outcome = messages.OutcomeNotSent
		}
	}
	d.rec.Add(end)
}

// describeNoDial says why a call could not be made: there is no client.
func (t *target) describeNoDial() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dialError == "" {
		return "no dial has returned yet"
	}
	return "no dial has succeeded yet; the last one: " + t.dialError
}

// callTool makes a call, every third with progress if the client can tell of it.
func (t *target) callTool(ctx context.Context, c Client, planned load.Call) (string, error) {
	arguments := map[string]any{"call": planned.ID}
	p, ok := c.(ProgressCaller)
	var number int
	if _, err := fmt.Sscanf(planned.ID, "c%d", &number); !ok || err != nil || number%3 != 0 {
		return c.Call(ctx, planned.Stream.Tool, arguments)
	}
	var once sync.Once
	return p.CallWithProgress(ctx, planned.Stream.Tool, arguments, func(message string) {
		if message != "" && message != planned.ID {
			once.Do(func() {
				t.reportBreach("C11", fmt.Sprintf("The caller of %s was told of progress that the server sent for %q.", planned.ID, message))
			})
		}
	})
}

// askTools asks the client for its tools and records them.
func (t *target) askTools(n int) {
	c := t.currentClient()
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	began := time.Now()
	names, err := c.Tools(ctx)
	e := history.Event{Side: history.Caller, Kind: history.ReadEnd, Server: t.plan.Name, Call: fmt.Sprintf("tools-%d", n),
		Method: "tools/list", Took: time.Since(began)}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && time.Since(began) > listTime+2*time.Second:
		t.reportBreach("C1", fmt.Sprintf("A question for the tools had %s, and returned after %s.", listTime, time.Since(began)))
		fallthrough
	case err != nil:
		e.Class, e.Text = messages.ClassNetwork, messages.Line(err.Error(), 200)
	default:
		slices.Sort(names)
		e.Names = names
	}
	t.day.rec.Add(e)
}
