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

// ampleTime is the bound of what works within a second on a machine that is not loaded.
const ampleTime = 20 * time.Second

// caseRun is where one case is played.
type caseRun struct {
	ctx         context.Context
	dir         string // its name stands in the command line of every server of this case
	driver      *adapterProcess
	points      []Point
	webServers  []*webServer
	serverCount int
}

// testServer is a server of the case.
type testServer struct {
	name           string
	connectCommand adapter.Command // how to connect
	records        string
	web            *webServer // nil over stdio
}

// scorePoint gives a point, or says what was seen in its place.
func (a *caseRun) scorePoint(ok bool, must, seen string, args ...any) bool {
	p := Point{Must: must, Got: ok}
	if !ok {
		p.Seen = fmt.Sprintf(seen, args...)
	}
	a.points = append(a.points, p)
	return ok
}

// newServer is one of the fixtures. It is started by the client.
func (a *caseRun) newServer(kind string, parameters ...string) *testServer {
	a.serverCount++
	p := &testServer{name: fmt.Sprintf("s%d", a.serverCount)}
	p.records = filepath.Join(a.dir, p.name+".jsonl")
	command, args := servers.Command(kind, append(parameters, "record="+p.records)...)
	p.connectCommand = adapter.Command{Command: command, Args: args}
	return p
}

func (a *caseRun) beginConnect(p *testServer, within time.Duration) <-chan answer {
	c := p.connectCommand
	c.Do, c.Name, c.TimeoutMs = "connect", p.name, int(within.Milliseconds())
	return a.driver.sendCommand(c)
}

func (a *caseRun) connectServer(p *testServer) answer { return <-a.beginConnect(p, ampleTime) }

// scoreConnect is the point for a connection that the client says it has, and the server knows of.
func (a *caseRun) scoreConnect(p *testServer) {
	got := a.connectServer(p)
	switch known := p.web != nil && p.web.countRequests("", "") > 0 || a.countRequests(p, "started") > 0; {
	case got.OK && !known:
		a.scorePoint(false, "it connects", "the client says so, and the server has seen nothing of it")
	default:
		a.scorePoint(got.OK, "it connects", "%s", got.errorText())
	}
}

func (a *caseRun) listTools(p *testServer) answer {
	return <-a.driver.sendCommand(adapter.Command{Do: "list", Name: p.name, TimeoutMs: int(ampleTime.Milliseconds())})
}

func (a *caseRun) beginCall(p *testServer, tool string, within time.Duration, args map[string]any) <-chan answer {
	raw, err := json.Marshal(args)
	if err != nil { // they are made of texts and numbers
		panic(err)
	}
	return a.driver.sendCommand(adapter.Command{Do: "call", Name: p.name, Tool: tool, ToolArgs: raw,
		TimeoutMs: int(within.Milliseconds())})
}

func (a *caseRun) callTool(p *testServer, tool string, within time.Duration, args map[string]any) answer {
	return <-a.beginCall(p, tool, within, args)
}

// callEcho reports whether a call is answered with its own text.
func (a *caseRun) callEcho(p *testServer, text string) (answer, bool) {
	got := a.callTool(p, "echo", ampleTime, map[string]any{"text": text})
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

func (a *caseRun) closeServer(p *testServer) answer {
	return <-a.driver.sendCommand(adapter.Command{Do: "close", Name: p.name})
}

// isConnected asks the client what it thinks of a server.
func (a *caseRun) isConnected(p *testServer) bool {
	got := <-a.driver.sendCommand(adapter.Command{Do: "status", TimeoutMs: 5000})
	return got.Status[p.name] == "connected"
}

// waitFor waits until something is so.
func (a *caseRun) waitFor(d time.Duration, condition func() bool) bool {
	for end := time.Now().Add(d); ; {
		if condition() {
			return true
		}
		if time.Now().After(end) || a.ctx.Err() != nil {
			return false
		}
		a.sleepContext(100 * time.Millisecond)
	}
}

func (a *caseRun) sleepContext(d time.Duration) {
	select {
	case <-time.After(d):
	case <-a.ctx.Done():
	}
}

// recordEntry is one line of a server's record.
type recordEntry struct {
	At     int64  `json:"at"`
	PID    int    `json:"pid"`
	Method string `json:"method"`
	Params string `json:"params"`
}

// readRecord is what a server was sent, over all of its processes.
func (a *caseRun) readRecord(p *testServer) (all []recordEntry) {
	text, err := os.ReadFile(p.records)
	if err != nil { // it was never started
		return nil
	}
	for l := range bytes.Lines(text) {
		var e recordEntry
		if json.Unmarshal(l, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// countRequests is how often a server was sent a method; "started" is how often it was started.
func (a *caseRun) countRequests(p *testServer, method string) (n int) {
	for _, e := range a.readRecord(p) {
		if e.Method == method {
			n++
		}
	}
	return n
}

// startTimes are the times at which a server was started, in their order. For each process that does more, one that was asked for
// its era and for nothing else is left out: the specification lets a client ask on a connection of its own, so that an older
// server which does not survive the question is not lost by it.
func (a *caseRun) startTimes(p *testServer) (at []int64) {
	record := a.readRecord(p)
	probed, more := map[int]bool{}, map[int]bool{}
	for _, e := range record {
		probed[e.PID] = probed[e.PID] || e.Method == "server/discover"
		more[e.PID] = more[e.PID] || !slices.Contains(probeMethods, e.Method)
	}
	probe := func(pid int) bool { return probed[pid] && !more[pid] } // one that was asked for nothing is started in vain
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

// probeMethods is what the record of a process holds that was only asked for its era.
var probeMethods = []string{"started", "server/discover", "notifications/cancelled", ""}

// runningPIDs are the processes of this case's servers, and what they have started.
func (a *caseRun) runningPIDs() []int { return processesWith(a.dir) }

// awaitNoProcess waits until no process of the servers is left, and says which are.
func (a *caseRun) awaitNoProcess(within time.Duration) (remaining []int, ok bool) {
	ok = a.waitFor(within, func() bool { remaining = a.runningPIDs(); return len(remaining) == 0 })
	return remaining, ok
}

// endCase leaves nothing of the case behind.
func (a *caseRun) endCase() {
	if !a.driver.quit(2 * time.Second) {
		a.driver.kill()
	}
	for range 50 { // whoever forks while it is killed is found by the next round
		remaining := a.runningPIDs()
		if len(remaining) == 0 {
			break
		}
		for _, pid := range remaining {
			killProcess(pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, s := range a.webServers {
		s.closeAll()
	}
	_ = os.RemoveAll(a.dir) // a temporary folder
}
