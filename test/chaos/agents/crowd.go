package agents

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A crowd is a program in the name of a principal of its own that opens more sessions of the legacy era over HTTP than it may have. It speaks to the
// endpoint alone: it pings, and opens and closes streams. So it knows at each moment which of its sessions the endpoint has, and in which order they
// were used, and judges each answer itself. It is no agent of the plan, and no server hears of it.
type crowd struct {
	fleet *Fleet
	rnd   *rand.Rand
	// open are the sessions that the endpoint has, the one that was used last at the end. gone are the ids of those that it had.
	open []*crowdSession
	gone []string
	// did tells what the crowd has done, for the text of a finding.
	did []string
	// hasErred is set after the first finding: later ones may only follow from it.
	hasErred bool
}

// crowdSession is one session of a crowd. stream is nil while it has none.
type crowdSession struct {
	id     string
	stream *crowdStream
}

// crowdStream is the stream of a session. read is closed when it has ended.
type crowdStream struct {
	cut  context.CancelFunc
	read chan struct{}
}

const (
	// crowdName is the principal of a crowd, and crowdSessions the number of sessions that it may have.
	crowdName     = "crowd"
	crowdSessions = 4
	// crowdSteps is the number of steps of one crowd. It waits for crowdSettles after it has opened a stream: by then the endpoint serves that.
	crowdSteps   = 40
	crowdSettles = time.Millisecond
)

// crowdOps are the times at which a crowd comes: once on each day, where requests are carried in memory.
func (f *Fleet) crowdOps() []Op {
	rnd := scenario.Rand(f.Plan.Seed, "crowd of sessions")
	at := time.Duration(rnd.Int64N(int64(max(f.Plan.Heal, time.Second))))
	if f.Dial != nil || at+time.Minute > f.Plan.End {
		return nil
	}
	return []Op{{at, func() { (&crowd{fleet: f, rnd: rnd}).play() }}}
}

// play does one thing after the other, and ends all sessions.
func (c *crowd) play() {
	for range crowdSteps {
		c.takeStep(c.rnd.IntN(12))
		if c.hasErred {
			break
		}
	}
	for len(c.open) > 0 {
		c.deleteSession(c.open[0])
	}
}

// takeStep does one thing.
func (c *crowd) takeStep(n int) {
	switch {
	case n < 4 || len(c.open) == 0:
		c.openSession()
	case n < 7:
		s := c.open[c.rnd.IntN(len(c.open))]
		c.checkStatus("a ping in the session "+s.id, c.exchange(http.MethodPost, s.id, ping, nil), http.StatusOK)
		c.noteUse(s)
	case n == 7:
		c.openStream(c.open[c.rnd.IntN(len(c.open))])
	case n == 8:
		c.closeStream(c.open[c.rnd.IntN(len(c.open))])
	case n == 9 && len(c.gone) > 0:
		id := c.gone[c.rnd.IntN(len(c.gone))]
		c.checkStatus("a ping in the session "+id+", which is gone", c.exchange(http.MethodPost, id, ping, nil), http.StatusNotFound)
	case n == 10:
		c.resumeAnswered(c.open[c.rnd.IntN(len(c.open))])
	case n == 11 && c.rnd.IntN(3) == 0:
		c.deleteSession(c.open[c.rnd.IntN(len(c.open))])
	}
}

const (
	ping       = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
)

// newRequest makes a request in a session.
func (c *crowd) newRequest(ctx context.Context, method, session, body string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, c.fleet.address+"/mcp", strings.NewReader(body))
	if err != nil {
		panic(err) // the address is the harness's own
	}
	if body == "" {
		r.Body = http.NoBody
	}
	r.Header.Set("Authorization", "Bearer "+tokenOf(crowdName))
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	return r
}

// exchange asks, reads the answer to its end, and returns its status. header gets the headers of the answer, unless it is nil.
func (c *crowd) exchange(method, session, body string, header func(http.Header)) int {
	res, err := c.fleet.client.RoundTrip(c.newRequest(c.fleet.lifetime, method, session, body))
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if header != nil {
		header(res.Header)
	}
	return res.StatusCode
}

// checkStatus judges an answer.
func (c *crowd) checkStatus(what string, got, want int) {
	c.did = append(c.did, fmt.Sprintf("%s: %d", c.shorten(what), got))
	if got == want || c.hasErred || c.fleet.lifetime.Err() != nil {
		return
	}
	c.hasErred = true
	c.fleet.reportFinding("I28", "", fmt.Sprintf("A principal that may have %d sessions, which the endpoint ends in the order in which they were used last, but for those with a stream, "+
		"had to be answered with the status %d, and was answered with %d: %s", crowdSessions, want, got, strings.Join(c.did[max(0, len(c.did)-12):], "; ")))
}

// shorten gives sessions numbers in the place of their ids, which chance has drawn.
func (c *crowd) shorten(what string) string {
	for n, id := range slices.Concat(c.gone, c.idsOpen()) {
		what = strings.ReplaceAll(what, id, fmt.Sprint(n+1))
	}
	return what
}

func (c *crowd) idsOpen() (ids []string) {
	for _, s := range c.open {
		ids = append(ids, s.id)
	}
	return ids
}

// noteUse notes that a session was used last of all.
func (c *crowd) noteUse(s *crowdSession) {
	i := slices.Index(c.open, s)
	c.open = append(slices.Delete(c.open, i, i+1), s)
}

// openSession opens a session. Where there are as many as may be, the one goes that was used before all others without a stream, and where all have one,
// the new one is refused.
func (c *crowd) openSession() {
	oldest, want := -1, http.StatusOK
	if len(c.open) >= crowdSessions {
		if oldest = slices.IndexFunc(c.open, func(s *crowdSession) bool { return s.stream == nil }); oldest < 0 {
			want = http.StatusServiceUnavailable
		}
	}
	id := ""
	got := c.exchange(http.MethodPost, "", initialize, func(h http.Header) { id = h.Get("Mcp-Session-Id") })
	c.checkStatus(fmt.Sprintf("a new session beside %d", len(c.open)), got, want)
	if id == "" {
		return
	}
	if oldest >= 0 {
		c.gone = append(c.gone, c.open[oldest].id)
		c.open = slices.Delete(c.open, oldest, oldest+1)
	}
	c.open = append(c.open, &crowdSession{id: id})
}

// openStream opens the stream of a session, in the place of the one that it has.
func (c *crowd) openStream(s *crowdSession) {
	ctx, cut := context.WithCancel(c.fleet.lifetime)
	res, err := c.fleet.client.RoundTrip(c.newRequest(ctx, http.MethodGet, s.id, "")) //nolint:bodyclose // readStream closes it
	if err != nil {
		cut()
		return
	}
	before := s.stream
	s.stream = &crowdStream{cut: cut, read: make(chan struct{})}
	c.readStream(res, s.stream)
	c.checkStatus("a stream of the session "+s.id, res.StatusCode, http.StatusOK)
	c.noteUse(s)
	time.Sleep(crowdSettles)
	if before != nil && !before.hasEnded() {
		c.checkStatus("the stream before it goes on", 0, http.StatusOK)
	}
}

// readStream reads a stream to its end.
func (c *crowd) readStream(res *http.Response, s *crowdStream) {
	c.fleet.running.Go(func() {
		defer close(s.read)
		defer s.cut()
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	})
}

// hasEnded reports whether nothing more comes on a stream.
func (s *crowdStream) hasEnded() bool {
	select {
	case <-s.read:
		return true
	default:
		return false
	}
}

// closeStream ends the stream of a session, if it has one.
func (c *crowd) closeStream(s *crowdSession) {
	if s.stream != nil {
		s.stream.cut()
		<-s.stream.read
		s.stream = nil
		c.did = append(c.did, c.shorten("the stream of the session "+s.id+" is closed"))
	}
}

// resumeAnswered asks for the rest of an answer that has come to its end: it is told so, and the stream of its session stays.
func (c *crowd) resumeAnswered(s *crowdSession) {
	r := c.newRequest(c.fleet.lifetime, http.MethodGet, s.id, "")
	r.Header.Set("Last-Event-ID", "2-1")
	ctx, cut := context.WithCancel(c.fleet.lifetime)
	defer cut()
	res, err := c.fleet.client.RoundTrip(r.WithContext(ctx)) //nolint:bodyclose // readStream closes it
	if err != nil {
		return
	}
	c.noteUse(s)
	rest := &crowdStream{cut: cut, read: make(chan struct{})}
	c.readStream(res, rest)
	time.Sleep(crowdSettles)
	c.checkStatus("the rest of an answer that is over, in the session "+s.id, res.StatusCode, http.StatusNoContent)
	if s.stream != nil && s.stream.hasEnded() {
		c.checkStatus("the stream of the session "+s.id+" has ended by that", 0, http.StatusOK)
	}
	cut()
	<-rest.read
}

// deleteSession ends a session, and its stream with it.
func (c *crowd) deleteSession(s *crowdSession) {
	c.checkStatus("the end of the session "+s.id, c.exchange(http.MethodDelete, s.id, "", nil), http.StatusNoContent)
	if s.stream != nil {
		<-s.stream.read
	}
	c.open = slices.Delete(c.open, slices.Index(c.open, s), slices.Index(c.open, s)+1)
	c.gone = append(c.gone, s.id)
}
