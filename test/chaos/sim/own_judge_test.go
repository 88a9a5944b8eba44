package sim

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
)

// ownStory plays the program's own client at a server that numbers its events: what the server's judges say of it.
type ownStory struct {
	t *testing.T
	c *ownWebConn
}

func newOwnStory(t *testing.T) *ownStory {
	tr := newTransport(messages.HTTP, "s.sim:443", messages.Spec{}, &quiet{})
	tr.web = scenario.WebNumbered
	c := &ownWebConn{baseConn: newBaseConn(tr, nil), numbered: true, requests: map[string][]*exchange{}}
	c.opened = true
	return &ownStory{t, c}
}

// get asks for a stream, after an event if last is not empty, and returns the status.
func (o *ownStory) get(last string) int {
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, "https://s.sim/mcp", nil)
	if err != nil {
		o.t.Fatal(err)
	}
	x := &exchange{method: "GET", header: map[string]string{"Last-Event-Id": last}, done: make(chan struct{}), own: newOwnResponse(req)}
	o.c.openStream(x)
	return x.own.head.StatusCode
}

// call makes a call that has no answer yet; leave is what ends its client's wait.
func (o *ownStory) call() (x *exchange, leave func()) {
	ctx, leave := context.WithCancel(o.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://s.sim/mcp", nil)
	if err != nil {
		o.t.Fatal(err)
	}
	x = &exchange{id: "7", method: "tools/call", header: map[string]string{}, done: make(chan struct{}), own: newOwnResponse(req)}
	o.c.requests["7"] = []*exchange{x}
	return x, leave
}

// breakPlainly opens and breaks so many streams without ids.
func (o *ownStory) breakPlainly(times int) {
	o.c.numbered = false
	for range times {
		if status := o.get(""); status != http.StatusOK {
			o.t.Fatalf("a stream is refused with %d", status)
		}
		o.c.cutStream()
	}
}

// want judges that the server noted a breach with this text, none for an empty one.
func (o *ownStory) want(text string) {
	o.t.Helper()
	if got := strings.Join(o.c.breaches, "; "); text == "" && got != "" || !strings.Contains(got, text) {
		o.t.Errorf("the judges say %q, want %q", got, text)
	}
}

func TestStreamsAreJudged(t *testing.T) {
	for name, story := range map[string]func(o *ownStory){
		"the stream breaks, and is gone on with when the server wants": func(o *ownStory) {
			o.get("")
			o.c.cutStream()
			time.Sleep(o.c.listening.retry)
			o.get("all-1/0")
			o.want("")
		},
		"it is gone on with too early": func(o *ownStory) {
			o.get("")
			o.c.cutStream()
			time.Sleep(o.c.listening.retry - time.Millisecond)
			o.get("all-1/0")
			o.want("1ms before the time that it had asked for")
		},
		"another stream is opened beside the one that is open": func(o *ownStory) {
			o.get("")
			o.get("")
			o.want("that before is open")
		},
		"every third request for another stream is put off, and is made again": func(o *ownStory) {
			o.breakPlainly(3)
			if status := o.get(""); status != http.StatusServiceUnavailable {
				o.t.Fatalf("the third request for another stream is answered with %d", status)
			}
			time.Sleep(2 * time.Second)
			o.get("")
			o.want("")
			if problem := o.c.problemOf(o.c.broken[len(o.c.broken)-1]); problem != "" {
				o.t.Error(problem)
			}
		},
		"what was put off is asked for too early": func(o *ownStory) {
			o.breakPlainly(3)
			o.get("")
			time.Sleep(1900 * time.Millisecond)
			o.get("")
			o.want("100ms before the time that it had asked for")
		},
		"what was put off is not asked for": func(o *ownStory) {
			o.breakPlainly(3)
			o.get("")
			if problem := o.c.problemOf(o.c.broken[len(o.c.broken)-1]); problem == "" {
				o.t.Error("the judges say nothing")
			}
		},
		"an event that is unknown is named again": func(o *ownStory) {
			o.c.resumptions = 6
			o.get("")
			o.c.cutStream()
			time.Sleep(time.Second)
			if status := o.get("all-1/0"); status != http.StatusBadRequest {
				o.t.Fatalf("the seventh resumption is answered with %d", status)
			}
			o.want("")
			o.get("all-1/0")
			o.want("which it had said it does not know")
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { story(newOwnStory(t)) })
		})
	}
}

func TestBrokenStreamsAreAskedForAgain(t *testing.T) {
	for name, c := range map[string]struct {
		after func(o *ownStory, leave func())
		want  string
	}{
		"it is asked for":                 {func(o *ownStory, _ func()) { time.Sleep(time.Second); o.get("7/0") }, ""},
		"nobody asks for it":              {func(o *ownStory, _ func()) { time.Sleep(time.Second) }, "it was not asked for the rest of it"},
		"the call is given up with it":    {func(_ *ownStory, leave func()) { leave() }, "it was not asked for the rest of it"},
		"who waited has left since then":  {func(_ *ownStory, leave func()) { time.Sleep(time.Second); leave() }, ""},
		"it is cancelled in that instant": {func(o *ownStory, leave func()) { o.c.noteCancelled("7"); leave() }, ""},
		"another call is cancelled":       {func(o *ownStory, leave func()) { o.c.noteCancelled("8"); leave() }, "it was not asked for the rest of it"},
		"the server has gone":             {func(o *ownStory, _ func()) { o.c.endRemote(ending{}) }, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwnStory(t)
				_, leave := o.call()
				defer leave()
				o.c.cutStream()
				if len(o.c.broken) != 1 {
					t.Fatalf("%d streams broke", len(o.c.broken))
				}
				c.after(o, leave)
				synctest.Wait()
				if got := o.c.problemOf(o.c.broken[0]); c.want == "" && got != "" || !strings.Contains(got, c.want) {
					t.Errorf("the judges say %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestSessionsAreJudged(t *testing.T) {
	closed := &transports.Error{Class: messages.ClassCanceled}
	for name, c := range map[string]struct {
		given bool
		named string
		bye   bool
		// denied says that the server refused the credentials.
		denied bool
		ended  error
		want   string
	}{
		"each request names it, and it is ended": {given: true, named: "a", bye: true, ended: closed},
		"a request does not name it":             {given: true, bye: true, ended: closed, want: "without the id of its session"},
		"a request names another":                {given: true, named: "b", bye: true, ended: closed, want: "without the id of its session"},
		"no session was given":                   {ended: closed},
		"it is not ended":                        {given: true, named: "a", ended: closed, want: "did not end its session"},
		"its credentials were refused":           {given: true, named: "a", denied: true, ended: closed},
		"the connection broke":                   {given: true, named: "a", ended: &transports.Error{Class: messages.ClassNetwork}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			o := newOwnStory(t)
			o.c.session, o.c.sessionGiven, o.c.closing, o.c.denied = "a", c.given, c.bye, c.denied
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://s.sim/mcp", nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.named != "" {
				req.Header.Set("Mcp-Session-Id", c.named)
			}
			o.c.judgeSession(req)
			o.c.judgeGoodbye(c.ended)
			o.want(c.want)
		})
	}
}
