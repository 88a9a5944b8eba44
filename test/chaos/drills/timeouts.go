package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// callStep is what a tool does after it has worked for a while: it tells of progress, or asks a person, who takes some time.
type callStep struct {
	work     time.Duration
	progress bool
	thinking time.Duration // of the person; 0 if the step asks nothing
	// meanwhile is how long the person has thought when the tool tells of progress; 0 if it does not.
	meanwhile time.Duration
}

// timedCall is one call, with all that bounds it. Bounds of 0 or less are none.
type timedCall struct {
	steps             []callStep
	timeout, longest  time.Duration
	deadline, leaving time.Duration // of the caller: its context's deadline, and when it gives up; 0: never
}

// foresee returns after which time the call must end, by which bound ("" is the tool's answer), how often the tool has told of progress by then,
// and whether a person is asked at that time.
func (c *timedCall) foresee() (end time.Duration, bound string, progress int, asking bool) {
	end, bound = 1<<62, ""
	for name, at := range map[string]time.Duration{"longest": c.longest, "deadline": c.deadline, "leaving": c.leaving} {
		if at > 0 && at < end {
			end, bound = at, name
		}
	}
	idleDue := time.Duration(1 << 62)
	if c.timeout > 0 {
		idleDue = c.timeout
	}
	now := time.Duration(0)
	for i, step := range c.steps {
		now += step.work
		if min(idleDue, end) < now {
			break
		}
		if step.progress {
			progress++
			idleDue = now + c.timeout
		}
		if step.meanwhile > 0 && now+step.meanwhile <= end {
			progress++
			idleDue = now + c.timeout
		}
		if now += step.thinking; now > end {
			return end, bound, progress, true
		}
		if idleDue += step.thinking; c.timeout <= 0 {
			idleDue = 1 << 62
		}
		if i == len(c.steps)-1 {
			return now, "", progress, false
		}
	}
	if idleDue < end {
		return idleDue, "timeout", progress, false
	}
	return end, bound, progress, false
}

// String says in words what the tool does, and by what the call is bounded.
func (c *timedCall) String() string {
	var text []string
	for _, step := range c.steps {
		text = append(text, "the tool works for "+step.work.String())
		if step.progress {
			text = append(text, "tells of progress")
		}
		if step.thinking > 0 {
			text = append(text, "asks a person, who thinks for "+step.thinking.String())
		}
		if step.meanwhile > 0 {
			text = append(text, "tells of progress "+step.meanwhile.String()+" after it asked")
		}
	}
	for _, bound := range []struct {
		words string
		after time.Duration
	}{{"its call timeout is", c.timeout}, {"its longest time", c.longest}, {"its caller's deadline", c.deadline}, {"its caller leaves after", c.leaving}} {
		if bound.after > 0 {
			text = append(text, bound.words+" "+bound.after.String())
		}
	}
	return strings.Join(text, ", ")
}

// drawTimedCall draws a call of which about half end by a bound.
func (s *stage) drawTimedCall(timeout, longest time.Duration) *timedCall {
	c := &timedCall{timeout: timeout, longest: longest}
	unit := timeout
	if unit <= 0 {
		unit = time.Minute
	}
	questions := 0
	for range 1 + s.rng.IntN(6) {
		step := callStep{work: s.drawSpan(time.Millisecond, unit*9/10), progress: s.isOneIn(2)}
		if !step.progress && questions < 3 && s.isOneIn(2) {
			questions++
			step.thinking = s.drawSpan(time.Second, unit*2)
			if s.isOneIn(3) {
				step.meanwhile = s.drawSpan(time.Millisecond, step.thinking)
			}
		}
		c.steps = append(c.steps, step)
	}
	if s.isOneIn(4) {
		c.deadline = s.drawSpan(time.Second, unit*3)
	}
	if s.isOneIn(5) {
		c.leaving = s.drawSpan(time.Second, unit*3)
	}
	return c
}

// playTimeouts makes calls that work, tell of progress and ask a person, each within its bounds or beyond one of them, and knows of each when
// it ends and by what.
func playTimeouts(s *stage) {
	timeout, longest := s.drawSpan(5*time.Second, 2*time.Minute), time.Duration(-1)
	if s.isOneIn(6) {
		timeout = -1
	} else if !s.isOneIn(4) {
		longest = s.drawSpan(timeout, 4*timeout)
	}
	work, now := newServer("work", "work"), &timedRun{}
	work.spec.CallTimeout, work.spec.MaxCallTimeout = messages.Duration(timeout), messages.Duration(longest)
	work.handle = now.performSteps
	m := s.connectServers(supervisor.Config{Elicit: now.answerQuestion}, work)
	if m == nil {
		return
	}
	for n := range 4 + s.rng.IntN(5) {
		// Until then the server may ask again.
		s.letPass(s.drawSpan(2*time.Minute, 3*time.Minute))
		now.call = s.drawTimedCall(timeout, longest)
		s.addStory("call %d: %s", n, now.call)
		if !s.makeTimedCall(m, work, now) {
			return
		}
	}
}

// timedRun is how one call goes. Its fields are written while the drill waits for the call.
type timedRun struct {
	call *timedCall
	// began is when the call was made; cancelled and closed are after which time the tool learned of the end, and the question was taken away.
	began             time.Time
	cancelled, closed time.Duration
	sent              atomic.Int64
	asked             int
	got               []float64
}

// performSteps is the tool.
func (r *timedRun) performSteps(ctx context.Context, c *toolCall) (any, error) {
	for _, step := range r.call.steps {
		select {
		case <-time.After(step.work):
		case <-ctx.Done():
		}
		if ctx.Err() == nil && step.progress {
			r.sendProgress(c)
		}
		if ctx.Err() == nil && step.thinking > 0 {
			if step.meanwhile > 0 {
				c.conn.work.Go(func() {
					select {
					case <-time.After(step.meanwhile):
						r.sendProgress(c)
					case <-ctx.Done():
					}
				})
			}
			_, _ = c.conn.askClient(ctx, "elicitation/create", map[string]any{"message": "May it go on?",
				"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}})
		}
		if ctx.Err() != nil {
			r.cancelled = time.Since(r.began)
			return nil, ctx.Err()
		}
	}
	return textResult(string(c.arguments)), nil
}

func (r *timedRun) sendProgress(c *toolCall) {
	c.conn.sendMessage(map[string]any{"method": "notifications/progress", "params": map[string]any{"progressToken": c.token, "progress": r.sent.Add(1)}})
}

// answerQuestion is the person.
func (r *timedRun) answerQuestion(ctx context.Context, _ supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
	questions := slices.DeleteFunc(slices.Clone(r.call.steps), func(step callStep) bool { return step.thinking == 0 })
	r.asked++
	select {
	case <-time.After(questions[min(r.asked, len(questions))-1].thinking):
	case <-ctx.Done():
		r.closed = time.Since(r.began)
		return supervisor.ElicitResult{}, ctx.Err()
	}
	return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{}`)}, nil
}

// makeTimedCall makes the call and judges how it ends. It reports false when something was found.
func (s *stage) makeTimedCall(m *supervisor.Manager, work *server, r *timedRun) bool {
	r.began, r.cancelled, r.closed, r.asked, r.got = time.Now(), 0, 0, 0, nil
	r.sent.Store(0)
	cancellations := len(work.heardOf("notifications/cancelled"))
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if r.call.deadline > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, r.call.deadline)
		defer end()
	}
	if r.call.leaving > 0 {
		defer time.AfterFunc(r.call.leaving, cancel).Stop()
	}
	args := fmt.Sprintf(`{"at":%q}`, r.began)
	res, err := m.CallServerTool(ctx, "work", "work", []byte(args), supervisor.WithProgress(func(p supervisor.Progress) { r.got = append(r.got, p.Progress) }))
	took := time.Since(r.began)
	s.settleAll()
	end, bound, progress, asking := r.call.foresee()
	ok := true
	report := func(invariant, format string, args ...any) {
		ok = false
		s.reportFinding(invariant, "work", format, args...)
	}
	if took != end {
		report("I2", "a call ended after %s with %v, and must end after %s%s", took, err, end, byBound(bound))
		return false
	}
	var typed *supervisor.Error
	class := messages.ClassTimeout
	if bound == "leaving" {
		class = messages.ClassCanceled
	}
	switch {
	case bound == "" && (err != nil || res.Text() != args):
		report("I3", "the tool answered, and its call ended with %v", err)
	case bound != "" && (!errors.As(err, &typed) || typed.Class != class || typed.Outcome != messages.OutcomeUnknown || typed.Server != "work"):
		report("I2", "a call was ended%s, and its error is %#v", byBound(bound), err)
	}
	// The server and the person learn of the end in that moment.
	wanted := 0
	if bound != "" {
		wanted = 1
	}
	if got := len(work.heardOf("notifications/cancelled")) - cancellations; got != wanted {
		report("I2", "a call was ended%s, and the server got %d cancellations of it", byBound(bound), got)
	}
	if bound != "" && r.cancelled != end {
		report("I2", "a call was ended%s after %s, and the server learned of it after %s", byBound(bound), end, r.cancelled)
	}
	if asking && r.closed != end {
		report("I24", "a call was ended%s after %s while a person was asked about it, and the question was taken away after %s", byBound(bound), end, r.closed)
	}
	// The caller gets the progress that came before the end, in order.
	for i, value := range r.got {
		if value != float64(i+1) || len(r.got) != progress {
			report("I4", "the caller was told of the progress %v, and the server sent 1 to %d", r.got, progress)
			break
		}
	}
	if len(r.got) == 0 && progress > 0 {
		report("I4", "the caller was told of no progress, and the server sent 1 to %d", progress)
	}
	return ok
}

// byBound says which bound ended a call.
func byBound(bound string) string {
	return map[string]string{
		"": " by its answer", "timeout": " by its call timeout", "longest": " by its longest time", "deadline": " by its caller's deadline", "leaving": " by its caller",
	}[bound]
}
