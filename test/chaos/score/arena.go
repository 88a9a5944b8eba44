package score

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// enough is the bound of what works within a second on a machine that is not loaded.
const enough = 20 * time.Second

// arena is where one case is played.
type arena struct {
	ctx    context.Context
	dir    string // its name stands in the command line of every server of this case
	driver *driver
	points []Point
	sites  []*site
	made   int
}

// peer is a server of the case.
type peer struct {
	name    string
	where   adapter.Command // how to connect
	records string
	site    *site // nil over stdio
}

// must gives a point, or says what was seen in its place.
func (a *arena) must(ok bool, must, seen string, args ...any) bool {
	p := Point{Must: must, Got: ok}
	if !ok {
		p.Seen = fmt.Sprintf(seen, args...)
	}
	a.points = append(a.points, p)
	return ok
}

// server is one of the fixtures. It is started by the client.
func (a *arena) server(kind string, parameters ...string) *peer {
	a.made++
	p := &peer{name: fmt.Sprintf("s%d", a.made)}
	p.records = filepath.Join(a.dir, p.name+".jsonl")
	command, args := servers.Command(kind, append(parameters, "record="+p.records)...)
	p.where = adapter.Command{Command: command, Args: args}
	return p
}

func (a *arena) connecting(p *peer, within time.Duration) <-chan answer {
	c := p.where
	c.Do, c.Name, c.TimeoutMs = "connect", p.name, int(within.Milliseconds())
	return a.driver.begin(c)
}

func (a *arena) connect(p *peer) answer { return <-a.connecting(p, enough) }

// connects is the point for a connection that the client says it has, and the server knows of.
func (a *arena) connects(p *peer) {
	got := a.connect(p)
	switch known := p.site != nil && p.site.visited("", "") > 0 || a.count(p, "started") > 0; {
	case got.OK && !known:
		a.must(false, "it connects", "the client says so, and the server has seen nothing of it")
	default:
		a.must(got.OK, "it connects", "%s", got.why())
	}
}

func (a *arena) list(p *peer) answer {
	return <-a.driver.begin(adapter.Command{Do: "list", Name: p.name, TimeoutMs: int(enough.Milliseconds())})
}

func (a *arena) calling(p *peer, tool string, within time.Duration, args map[string]any) <-chan answer {
	raw, err := json.Marshal(args)
	if err != nil { // they are made of texts and numbers
		panic(err)
	}
	return a.driver.begin(adapter.Command{Do: "call", Name: p.name, Tool: tool, ToolArgs: raw,
		TimeoutMs: int(within.Milliseconds())})
}

func (a *arena) call(p *peer, tool string, within time.Duration, args map[string]any) answer {
	return <-a.calling(p, tool, within, args)
}

// echoes reports whether a call is answered with its own text.
func (a *arena) echoes(p *peer, text string) (answer, bool) {
	got := a.call(p, "echo", enough, map[string]any{"text": text})
	return got, textOf(got) == text
}

// textOf is the first text of a result.
func textOf(a answer) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if !a.OK || json.Unmarshal(a.Result, &r) != nil || len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

func (a *arena) close(p *peer) answer {
	return <-a.driver.begin(adapter.Command{Do: "close", Name: p.name})
}

// connected asks the client what it thinks of a server.
func (a *arena) connected(p *peer) bool {
	got := <-a.driver.begin(adapter.Command{Do: "status", TimeoutMs: 5000})
	return got.Status[p.name] == "connected"
}

// within waits until something is so.
func (a *arena) within(d time.Duration, is func() bool) bool {
	for end := time.Now().Add(d); ; {
		if is() {
			return true
		}
		if time.Now().After(end) || a.ctx.Err() != nil {
			return false
		}
		a.pause(100 * time.Millisecond)
	}
}

func (a *arena) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-a.ctx.Done():
	}
}

// entry is one line of a server's record.
type entry struct {
	At     int64  `json:"at"`
	PID    int    `json:"pid"`
	Method string `json:"method"`
	Params string `json:"params"`
}

// record is what a server was sent, over all of its processes.
func (a *arena) record(p *peer) (all []entry) {
	text, err := os.ReadFile(p.records)
	if err != nil { // it was never started
		return nil
	}
	for l := range bytes.Lines(text) {
		var e entry
		if json.Unmarshal(l, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// count is how often a server was sent a method; "started" is how often it was started.
func (a *arena) count(p *peer, method string) (n int) {
	for _, e := range a.record(p) {
		if e.Method == method {
			n++
		}
	}
	return n
}

// starts are the times at which a server was started, in their order. For each process that does more, one that was asked for
// its era and for nothing else is left out: the specification lets a client ask on a connection of its own, so that an older
// server which does not survive the question is not lost by it.
func (a *arena) starts(p *peer) (at []int64) {
	record := a.record(p)
	asked, more := map[int]bool{}, map[int]bool{}
	for _, e := range record {
		asked[e.PID] = asked[e.PID] || e.Method == "server/discover"
		more[e.PID] = more[e.PID] || !slices.Contains(ofProbes, e.Method)
	}
	probe := func(pid int) bool { return asked[pid] && !more[pid] } // one that was asked for nothing is started in vain
	spare := 0
	for pid := range more {
		if !probe(pid) {
			spare++
		}
	}
	for _, e := range record {
		switch {
		case e.Method != "started":
		case probe(e.PID) && spare > 0:
			spare--
		default:
			at = append(at, e.At)
		}
	}
	return at
}

// ofProbes is what the record of a process holds that was only asked for its era.
var ofProbes = []string{"started", "server/discover", "notifications/cancelled", ""}

// running are the processes of this case's servers, and what they have started.
func (a *arena) running() []int { return processesWith(a.dir) }

// gone waits until no process of the servers is left, and says which are.
func (a *arena) gone(within time.Duration) (left []int, ok bool) {
	ok = a.within(within, func() bool { left = a.running(); return len(left) == 0 })
	return left, ok
}

// end leaves nothing of the case behind.
func (a *arena) end() {
	if !a.driver.quit(2 * time.Second) {
		a.driver.kill()
	}
	for range 50 { // whoever forks while it is killed is found by the next round
		left := a.running()
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			kill(pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, s := range a.sites {
		s.end()
	}
	_ = os.RemoveAll(a.dir) // a temporary folder
}
