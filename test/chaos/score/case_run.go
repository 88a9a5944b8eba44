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

// ampleTime is the limit for what works within a second on a machine without load.
const ampleTime = 20 * time.Second

// caseRun is one case while it is played. Only the goroutine of the case uses it.
type caseRun struct {
	ctx context.Context
	// dir is the temporary folder of the case. Its name stands in the command line of every server of the case, by which
	// runningPIDs finds them.
	dir    string
	driver *adapterProcess
	// points grow while the case runs, so that a case that panics keeps those before.
	points []Point
	// webServers are closed by endCase; serverCount gives servers their names.
	webServers  []*webServer
	serverCount int
	// prefix stands before the names of servers, where several cases are played in one client.
	prefix string
}

// testServer is one server of the case.
type testServer struct {
	name string
	// connectCommand is the command that connects to it, without name and limit.
	connectCommand adapter.Command
	// records is the file in which a stdio server records what it received.
	records string
	// web is nil over stdio.
	web *webServer
}

// scorePoint gives a point, or records what was seen instead. It returns ok.
func (a *caseRun) scorePoint(ok bool, must, seen string, args ...any) bool {
	p := Point{Must: must, Got: ok}
	if !ok {
		p.Seen = fmt.Sprintf(seen, args...)
	}
	a.points = append(a.points, p)
	return ok
}

// newServer describes a server of package test/servers of a kind; the client starts it when it connects.
func (a *caseRun) newServer(kind string, parameters ...string) *testServer {
	a.serverCount++
	p := &testServer{name: fmt.Sprintf("%ss%d", a.prefix, a.serverCount)}
	p.records = filepath.Join(a.dir, p.name+".jsonl")
	command, args := servers.Command(kind, append(parameters, "record="+p.records)...)
	p.connectCommand = adapter.Command{Command: command, Args: args}
	return p
}

// beginConnect makes the client connect, and returns a channel with its answer.
func (a *caseRun) beginConnect(p *testServer, within time.Duration) <-chan answer {
	c := p.connectCommand
	c.Do, c.Name, c.TimeoutMs = "connect", p.name, int(within.Milliseconds())
	return a.driver.sendCommand(c)
}

// connectServer makes the client connect, and waits for the answer.
func (a *caseRun) connectServer(p *testServer) answer { return <-a.beginConnect(p, ampleTime) }

// scoreConnect gives the point for a connection that the client reports and the server has seen.
func (a *caseRun) scoreConnect(p *testServer) {
	got := a.connectServer(p)
	switch known := p.web != nil && p.web.countRequests("", "") > 0 || a.countRequests(p, "started") > 0; {
	case got.OK && !known:
		a.scorePoint(false, "it connects", "the client says so, and the server has seen nothing of it")
	default:
		a.scorePoint(got.OK, "it connects", "%s", got.errorText())
	}
}

// listTools asks the client for the tools that it offers of a server.
func (a *caseRun) listTools(p *testServer) answer {
	return <-a.driver.sendCommand(adapter.Command{Do: "list", Name: p.name, TimeoutMs: int(ampleTime.Milliseconds())})
}

// beginCall makes the client call a tool, and returns a channel with its answer.
func (a *caseRun) beginCall(p *testServer, tool string, within time.Duration, args map[string]any) <-chan answer {
	// The arguments are strings and numbers, so Marshal cannot fail.
	raw, err := json.Marshal(args)
	if err != nil { // they are made of texts and numbers
		panic(err)
	}
	return a.driver.sendCommand(adapter.Command{Do: "call", Name: p.name, Tool: tool, ToolArgs: raw,
		TimeoutMs: int(within.Milliseconds())})
}

// callTool makes the client call a tool, and waits for the answer.
func (a *caseRun) callTool(p *testServer, tool string, within time.Duration, args map[string]any) answer {
	return <-a.beginCall(p, tool, within, args)
}

// callEcho reports whether a call was answered with its own text.
func (a *caseRun) callEcho(p *testServer, text string) (answer, bool) {
	if p.web != nil {
		got := a.callTool(p, "read", ampleTime, map[string]any{"call": text})
		return got, callOf(got) == text
	}
	got := a.callTool(p, "echo", ampleTime, map[string]any{"text": text})
	return got, textOf(got) == text
}

// callOf returns the name that a call of a webServer had, as the text of its result repeats it.
func callOf(a answer) string {
	var r struct{ Call string }
	_ = json.Unmarshal([]byte(textOf(a)), &r) // what is no result of such a server has no name
	return r.Call
}

// textOf returns the first text of a result, empty if there is none.
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

// closeServer makes the client disconnect from a server.
func (a *caseRun) closeServer(p *testServer) answer {
	return <-a.driver.sendCommand(adapter.Command{Do: "close", Name: p.name})
}

// isConnected reports whether the client calls a server connected.
func (a *caseRun) isConnected(p *testServer) bool {
	got := <-a.driver.sendCommand(adapter.Command{Do: "status", TimeoutMs: 5000})
	return got.Status[p.name] == "connected"
}

// waitFor asks condition every 100 ms until it is true, for at most d. It returns false if it never was.
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

// sleepContext sleeps for d, or until the case ends.
func (a *caseRun) sleepContext(d time.Duration) {
	select {
	case <-time.After(d):
	case <-a.ctx.Done():
	}
}

// recordEntry is one line of a server's record.
// At is the time in nanoseconds.
type recordEntry struct {
	At     int64  `json:"at"`
	PID    int    `json:"pid"`
	Method string `json:"method"`
	Params string `json:"params"`
}

// readRecord returns what a server received, over all of its processes.
func (a *caseRun) readRecord(p *testServer) (all []recordEntry) {
	text, err := os.ReadFile(p.records)
	// The server was never started.
	if err != nil {
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

// countRequests returns how often a server received a method; "started" counts its starts.
func (a *caseRun) countRequests(p *testServer, method string) (n int) {
	for _, e := range a.readRecord(p) {
		if e.Method == method {
			n++
		}
	}
	return n
}

// startTimes returns the times at which a server was started, in their order. For each process that did real work it leaves out
// one that was only asked for its era: the specification lets a client probe on a connection of its own, so that an older
// server that does not survive the probe is not lost by it.
func (a *caseRun) startTimes(p *testServer) (at []int64) {
	record := a.readRecord(p)
	probed, more := map[int]bool{}, map[int]bool{}
	for _, e := range record {
		probed[e.PID] = probed[e.PID] || e.Method == "server/discover"
		more[e.PID] = more[e.PID] || !slices.Contains(probeMethods, e.Method)
	}
	// A process that was not even asked for its era was started in vain, and counts.
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

// probeMethods are the entries in the record of a process that was only asked for its era.
var probeMethods = []string{"started", "server/discover", "notifications/cancelled", ""}

// runningPIDs returns the processes of this case's servers, and those that they have started.
func (a *caseRun) runningPIDs() []int { return processesWith(a.dir) }

// awaitNoProcess waits until no process of the servers is left, and returns those that are.
func (a *caseRun) awaitNoProcess(within time.Duration) (remaining []int, ok bool) {
	ok = a.waitFor(within, func() bool { remaining = a.runningPIDs(); return len(remaining) == 0 })
	return remaining, ok
}

// clientMemory returns the resident memory of the client in bytes, with its launcher's.
func (a *caseRun) clientMemory() (bytes int64) {
	for _, pid := range a.driver.clientPIDs() {
		bytes += residentMemory(pid)
	}
	return bytes
}

// countClientZombies counts the children of the client that have ended and that it did not wait for.
func (a *caseRun) countClientZombies() (n int) {
	for _, pid := range a.driver.clientPIDs() {
		n += countZombies(pid)
	}
	return n
}

// endCase ends everything that the case has started but the client, and removes its folder.
func (a *caseRun) endCase() {
	// A process that forks while it is killed is found in the next round.
	for range 50 {
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
		s.group.Close()
	}
	// An error leaves only a temporary folder behind.
	_ = os.RemoveAll(a.dir)
}
