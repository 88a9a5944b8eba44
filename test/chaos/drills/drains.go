package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// drainedRequest is a call or a read that runs, or waits for its turn, when its connection is ended. The server's and the caller's goroutines
// write it while the drill sleeps.
type drainedRequest struct {
	isRead, asks bool
	// answer is when the server answers it, and heard when it tells of progress.
	answer, heard time.Time
	// sent counts how often it came to the server; cut is when the server learned that its caller has gone.
	sent int
	cut  time.Time
	// progressAt is when its caller heard of progress.
	progressAt []time.Time
	ended      time.Time
	err        error
	text       string
}

// drainDrill is a server with requests under way whose connection is ended.
type drainDrill struct {
	*stage
	work  *server
	m     *supervisor.Manager
	drain time.Duration
	// all are the requests that are under way, of which the last ones wait for their turn.
	mu      sync.Mutex
	all     []*drainedRequest
	waiting int
	asked   []time.Time // when a person's question was taken away
	// permission is a call that waits for a person's permission when the manager is closed; nil: there is none.
	permission *drainedRequest
	gone       []time.Time // when a connection of the server had ended
}

// ending is a way to end a connection. drains says that requests which run may go on for the time of drains.
type ending struct {
	words           string
	drains, goesOn  bool // goesOn: the requests go on as if nothing had happened
	returnsAt       string
	perform         func(context.Context) error
	refusal         error // what a request gets that comes afterwards
	isClose, isBack bool  // isBack: there is another connection afterwards
}

// playDrains ends the connection of a server with requests under way, by each command and by Close: those that run may go on for the time of
// drains, in which they tell of progress and are answered; those that wait, and those that come later, are not sent.
func playDrains(s *stage) {
	d := &drainDrill{stage: s, work: newServer("work", "hold", "guarded"), drain: s.drawSpan(time.Second, 20*time.Second)}
	d.work.offers["resources"] = []map[string]any{{"name": "one", "uri": "drill://jobs/one"}}
	d.work.handle = func(ctx context.Context, c *toolCall) (any, error) {
		var p struct{ N int }
		_ = json.Unmarshal(c.arguments, &p)
		return textResult(string(c.arguments)), d.performRequest(ctx, c.conn, d.all[p.N], c.token)
	}
	d.work.instead = d.holdRead
	running, waits := 1+s.rng.IntN(4), s.rng.IntN(3)
	d.work.spec.CallTimeout, d.work.spec.MaxCallTimeout, d.work.spec.MaxInFlight = -1, -1, running
	cfg := supervisor.Config{Timing: actors.Timing{Drain: d.drain}, Elicit: d.askPerson, Ask: d.askPermission}
	cfg.Access.Own.Rules = append(cfg.Access.Own.Rules, access.MustParse(access.Ask, "mcp__work__guarded"))
	if d.m = s.connectServers(cfg, d.work); d.m == nil {
		return
	}
	e := d.drawEnding()
	at := time.Now().Add(s.drawSpan(time.Millisecond, 5*time.Second))
	d.waiting = waits
	for n := range running + waits {
		q := &drainedRequest{isRead: s.isOneIn(3), answer: at.Add(s.drawSpan(time.Millisecond, d.drain*3/2) | 1)}
		q.heard = at.Add(s.drawSpan(1, q.answer.Sub(at)-1))
		q.asks = !q.isRead && !e.goesOn && s.isOneIn(4)
		d.all = append(d.all, q)
		s.runBeside(func() { d.sendRequest(n, q) })
		s.settleAll()
	}
	if e.isClose && s.isOneIn(2) {
		d.permission = &drainedRequest{}
		s.runBeside(func() {
			_, d.permission.err = d.m.CallServerTool(s.ctx, "work", "guarded", nil)
			d.permission.ended = time.Now()
		})
	}
	s.letPass(time.Until(at))
	s.addStory("%d requests run and %d wait; %s, drain time %s", running, waits, e.words, d.drain)
	var returned time.Time
	s.runBeside(func() {
		if err := e.perform(s.ctx); err != nil {
			s.reportFinding("I16", "work", "%s ended with %v", e.words, err)
		}
		returned = time.Now()
	})
	s.settleAll()
	d.checkLater(e, at)
	s.letPass(2*d.drain + time.Minute)
	d.judge(e, at, returned)
}

// drawEnding draws a way to end the connection.
func (d *drainDrill) drawEnding() ending {
	none := map[string]supervisor.Spec{}
	switch d.rng.IntN(8) {
	case 0:
		return ending{words: "it is connected anew", drains: true, returnsAt: "end", isBack: true, refusal: supervisor.ErrNotConnected, perform: func(ctx context.Context) error { return d.m.Reconnect(ctx, "work") }}
	case 1:
		return ending{words: "it gets another spec", drains: true, isBack: true, refusal: supervisor.ErrNotConnected, perform: func(ctx context.Context) error {
			other := d.work.spec
			other.LogLevel = "debug"
			_, err := d.m.SetServers(ctx, map[string]supervisor.Spec{"work": other})
			return err
		}}
	case 2:
		return ending{words: "it is removed", drains: true, refusal: supervisor.ErrUnknownServer, perform: func(ctx context.Context) error { return d.m.Remove(ctx, "work") }}
	case 3:
		return ending{words: "all servers are taken away", drains: true, refusal: supervisor.ErrUnknownServer, perform: func(ctx context.Context) error { _, err := d.m.SetServers(ctx, none); return err }}
	case 4:
		return ending{words: "it is disconnected", refusal: supervisor.ErrDisabled, perform: func(ctx context.Context) error { return d.m.Disconnect(ctx, "work") }}
	case 5:
		return ending{words: "it is disabled", goesOn: true, refusal: supervisor.ErrDisabled, perform: func(ctx context.Context) error { return d.m.Toggle(ctx, "work", false) }}
	}
	return d.drawClose()
}

// drawClose draws an end of the manager: half of the time that it is given is for the requests, 5 s if it is given none.
func (d *drainDrill) drawClose() ending {
	e := ending{words: "the manager is closed", drains: true, returnsAt: "end", isClose: true, refusal: supervisor.ErrClosed, perform: func(ctx context.Context) error { return d.m.Close(ctx) }}
	if d.drain = 5 * time.Second; d.isOneIn(2) {
		d.drain = d.drawSpan(time.Second, 20*time.Second)
		e.words = fmt.Sprintf("the manager is closed within %s", 2*d.drain)
		e.perform = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 2*d.drain)
			defer cancel()
			return d.m.Close(ctx)
		}
	}
	return e
}

// sendRequest sends a request and notes its end.
func (d *drainDrill) sendRequest(n int, q *drainedRequest) {
	onProgress := supervisor.WithProgress(func(supervisor.Progress) {
		d.mu.Lock()
		defer d.mu.Unlock()
		q.progressAt = append(q.progressAt, time.Now())
	})
	if q.isRead {
		res, err := d.m.ReadServerResource(d.ctx, "work", fmt.Sprint("drill://jobs/", n), onProgress)
		if q.err = err; err == nil {
			q.text = res.Text()
		}
	} else {
		res, err := d.m.CallServerTool(d.ctx, "work", "hold", map[string]any{"n": n}, onProgress)
		if q.err = err; err == nil {
			q.text = res.Text()
		}
	}
	q.ended = time.Now()
}

// holdRead answers a read as the tool answers a call.
func (d *drainDrill) holdRead(c *conn, m message) bool {
	if m.Method == "initialize" {
		context.AfterFunc(c.ctx, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.gone = append(d.gone, time.Now())
		})
	}
	if m.Method != "resources/read" {
		return false
	}
	var p struct {
		URI  string
		Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	n := 0
	_, _ = fmt.Sscanf(p.URI, "drill://jobs/%d", &n)
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	c.running[string(m.ID)] = cancel
	c.mu.Unlock()
	c.work.Go(func() {
		defer cancel()
		if d.performRequest(ctx, c, d.all[n], p.Meta.ProgressToken) == nil {
			c.sendResult(m, map[string]any{"contents": []any{map[string]any{"uri": p.URI, "text": fmt.Sprintf(`{"n":%d}`, n)}}})
		}
	})
	return true
}

// performRequest is the server's work: it tells of progress once, and answers in its time.
func (d *drainDrill) performRequest(ctx context.Context, c *conn, q *drainedRequest, token json.RawMessage) error {
	d.mu.Lock()
	q.sent++
	isRepetition := q.sent > 1
	d.mu.Unlock()
	if isRepetition {
		return nil
	}
	if q.asks {
		_, _ = c.askClient(ctx, "elicitation/create", map[string]any{"message": "May it go on?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}})
		<-ctx.Done()
	}
	select {
	case <-time.After(time.Until(q.heard)):
		c.sendMessage(map[string]any{"method": "notifications/progress", "params": map[string]any{"progressToken": token, "progress": 1}})
	case <-ctx.Done():
	}
	select {
	case <-time.After(time.Until(q.answer)):
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		q.cut = time.Now()
	}
	return ctx.Err()
}

// askPerson is a person who does not answer.
func (d *drainDrill) askPerson(ctx context.Context, _ supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
	<-ctx.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, time.Now())
	return supervisor.ElicitResult{}, ctx.Err()
}

// askPermission is a person who does not say whether a call may be made.
func (d *drainDrill) askPermission(ctx context.Context, _ supervisor.AskRequest) (supervisor.AskAnswer, error) {
	<-ctx.Done()
	d.permission.cut = time.Now()
	return "", ctx.Err()
}

// checkLater sends requests after the connection's end has begun: none is sent.
func (d *drainDrill) checkLater(e ending, at time.Time) {
	last := d.lastEnd(e, at)
	if !last.After(time.Now()) && e.isBack {
		return
	}
	_, callErr := d.m.CallServerTool(d.ctx, "work", "hold", map[string]any{"n": 0})
	_, readErr := d.m.ReadServerResource(d.ctx, "work", "drill://jobs/0")
	for _, err := range []error{callErr, readErr} {
		if !errors.Is(err, e.refusal) || messages.OutcomeOf(err) != messages.OutcomeNotSent {
			d.reportFinding("I2", "work", "%s, and a request that came afterwards ended with %v, of class %s", e.words, err, messages.ClassOf(err))
		}
	}
}

// endOf returns when a request must end, and whether with its answer.
func (d *drainDrill) endOf(e ending, n int, at time.Time) (end time.Time, isAnswered bool) {
	q, most := d.all[n], at
	if e.drains {
		most = at.Add(d.drain)
	}
	switch {
	case n >= len(d.all)-d.waiting: // it waits, and its gate is closed
		return at, false
	case q.asks: // its question has no answer
		return most, false
	case e.goesOn || q.answer.Before(most):
		return q.answer, true
	}
	return most, false
}

// lastEnd returns when the connection must have ended.
func (d *drainDrill) lastEnd(e ending, at time.Time) time.Time {
	last := at
	for n := range d.all {
		if end, _ := d.endOf(e, n, at); end.After(last) {
			last = end
		}
	}
	return last
}

// judge compares the ends of the requests, of the command and of the connection with what is foreseen.
func (d *drainDrill) judge(e ending, at, returned time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.lastEnd(e, at)
	for n, q := range d.all {
		end, isAnswered := d.endOf(e, n, at)
		isWaiting := n >= len(d.all)-d.waiting
		if !d.judgeRequest(e, q, n, at, end, isAnswered, isWaiting) {
			return
		}
	}
	wantReturn := at
	if e.returnsAt == "end" {
		wantReturn = last
	}
	if late := returned.Sub(wantReturn); late < 0 || late > time.Millisecond {
		d.reportFinding("I16", "work", "%s at %s: the command returned %s after that, and must %s", e.words, clock(at), returned.Sub(at), wantReturn.Sub(at))
		return
	}
	conns, opened := 0, 1
	if e.isBack {
		conns, opened = 1, 2
	} else if e.goesOn {
		conns = 1
	}
	if len(d.work.openConns()) != conns || d.work.countOpened() != opened {
		d.reportFinding("I12", "work", "%s, and afterwards it has %d connections of %d, and must have %d of %d", e.words, len(d.work.openConns()), d.work.countOpened(), conns, opened)
		return
	}
	if !e.goesOn && (len(d.gone) != 1 || !d.gone[0].Equal(last)) {
		d.reportFinding("I17", "work", "%s at %s: its connection has ended at %v, and must after %s, with the last of its requests", e.words, clock(at), d.gone, last.Sub(at))
	}
	if e.isBack && !d.work.lastDial().Equal(last) {
		d.reportFinding("I17", "work", "%s at %s: it is dialled again after %s, and must be after %s", e.words, clock(at), d.work.lastDial().Sub(at), last.Sub(at))
	}
	for _, t := range d.asked {
		if most := d.lastEnd(e, at); !t.Equal(most) {
			d.reportFinding("I24", "work", "%s at %s, and a question of a tool to a person was taken away %s later, and its call ended %s later", e.words, clock(at), t.Sub(at), most.Sub(at))
		}
	}
	if p := d.permission; p != nil && e.isClose && (!p.ended.Equal(at) || !p.cut.Equal(at) || !errors.Is(p.err, supervisor.ErrClosed) || messages.OutcomeOf(p.err) != messages.OutcomeNotSent) {
		d.reportFinding("I20", "work", "%s at %s: the person who was asked whether a call may be made was freed after %s, and the call ended after %s with %v", e.words, clock(at), p.cut.Sub(at),
			p.ended.Sub(at), p.err)
	}
}

// judgeRequest judges the end of one request.
func (d *drainDrill) judgeRequest(e ending, q *drainedRequest, n int, at, end time.Time, isAnswered, isWaiting bool) bool {
	what := "a call"
	if q.isRead {
		what = "a read"
	}
	if !q.ended.Equal(end) {
		d.reportFinding("I17", "work", "%s at %s: %s whose answer takes %s (it waits: %t) ended after %s with %v, and must end after %s", e.words, clock(at), what, q.answer.Sub(at), isWaiting,
			q.ended.Sub(at), q.err, end.Sub(at))
		return false
	}
	repeated := !isAnswered && !isWaiting && q.isRead && e.isBack
	outcome, sent := messages.OutcomeUnknown, 1
	switch {
	case isAnswered:
		outcome = messages.OutcomeResult
	case isWaiting:
		outcome, sent = messages.OutcomeNotSent, 0
	case repeated: // a read changes nothing, and is sent on the next connection
		outcome, sent = messages.OutcomeResult, 2
	}
	if got := messages.OutcomeOf(q.err); got != outcome || q.sent != sent {
		d.reportFinding("I2", "work", "%s: %s (answered: %t, it waits: %t) was sent %d times and ended as %s with %v, and must be %d times and as %s", e.words, what, isAnswered, isWaiting, q.sent, got, q.err,
			sent, outcome)
		return false
	}
	if want := fmt.Sprintf(`{"n":%d}`, n); outcome == messages.OutcomeResult && !q.asks && q.text != want {
		d.reportFinding("I3", "work", "%s: %s was answered with %q, and its result is %q", e.words, what, want, q.text)
		return false
	}
	if isWaiting && !errors.Is(q.err, e.refusal) {
		d.reportFinding("I2", "work", "%s: %s that waited for its turn ended with %v", e.words, what, q.err)
		return false
	}
	if outcome == messages.OutcomeUnknown && !q.cut.Equal(end) {
		d.reportFinding("I2", "work", "%s: %s was given up after %s, and the server learned of it after %s", e.words, what, end.Sub(at), q.cut.Sub(at))
		return false
	}
	wantTold := 0
	if sent > 0 && !q.asks && q.heard.Before(end) {
		wantTold = 1
	}
	if len(q.progressAt) != wantTold || wantTold == 1 && !q.progressAt[0].Equal(q.heard) {
		d.reportFinding("I4", "work", "%s: the server tells the caller of %s of progress after %s, and it ends after %s; the caller heard at %v", e.words, what, q.heard.Sub(at), end.Sub(at), q.progressAt)
		return false
	}
	return true
}
