package score

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// processCases are the cases about processes.
var processCases = []Case{
	{Name: "an ordinary day", Over: "stdio", play: ordinaryDay,
		Story: "A good server is connected, listed, called and closed."},
	{Name: "a silent server", Over: "stdio", Faults: []string{"P4"}, Plays: []string{"hang-start"}, play: silentServer,
		Story: "One server never answers anything. Another one, asked for meanwhile, must not wait for it."},
	{Name: "silence about the era", Over: "stdio", Faults: []string{"P5"}, Plays: []string{"silent-discover"}, play: silentAboutEra,
		Story: "An older server says nothing to the question for the era, and answers initialize."},
	{Name: "death of the question for the era", Over: "stdio", Faults: []string{"P5"}, Plays: []string{"die-on-discover"}, play: diesOfEra,
		Story: "An older server exits when its first message is not initialize."},
	{Name: "noise on standard output", Over: "stdio", Faults: []string{"P6"}, Plays: []string{"noise"}, play: outputNoise,
		Story: "A server prints a banner and log lines to standard output."},
	{Name: "a flood on standard output", Over: "stdio", Faults: []string{"P6", "I9"}, Plays: []string{"noise"}, alone: true, play: outputFlood,
		Story: "After its list a server prints log lines without end. The client's memory and its other server must not suffer."},
	{Name: "a full standard error", Over: "stdio", Faults: []string{"P7"}, Plays: []string{"stderr-flood"}, play: fullStderr,
		Story: "A server writes 4 MiB to standard error before it reads, and stands still if nobody drains."},
	{Name: "a huge line", Over: "stdio", Faults: []string{"P8"}, Plays: []string{"huge-line"}, play: hugeLine,
		Story: "One result is a line of 32 MiB. It may be given or refused; the next call must work."},
	{Name: "a line without end", Over: "stdio", Faults: []string{"P8", "I9"}, Plays: []string{"endless-line"}, alone: true, play: endlessLine,
		Story: "After its list a server writes a line that never ends."},
	{Name: "a crash", Over: "stdio", Faults: []string{"P12"}, Plays: []string{"crash"}, alone: true, play: crashInCall,
		Story: "A server crashes in a call. It must be started again, by itself or for the next call."},
	{Name: "a crash loop", Over: "stdio", Faults: []string{"P12"}, Plays: []string{"crash-loop"}, play: crashLoop,
		Story: "A server exits whenever it has answered its list. It must not be started without a pause."},
	{Name: "no such program", Over: "stdio", Faults: []string{"P14"}, Plays: []string{"missing-binary"}, play: missingProgram,
		Story: "The command of a server does not exist."},
	{Name: "an unknown version", Over: "stdio", Faults: []string{"R16"}, Plays: []string{"wrong-version"}, play: wrongVersion,
		Story: "A server answers initialize with a version that nobody speaks. It must not be left running."},
	{Name: "a launcher's tree", Over: "stdio", Faults: []string{"P2"}, play: launcherTree,
		Story: "The server is a grandchild, as under npx. Closed, nothing of the tree may be left."},
	{Name: "a child that outlives its server", Over: "stdio", Faults: []string{"P2"}, Plays: []string{"grandchild"}, play: outlivingChild,
		Story: "The server has started a process that holds its output open and does not end with it."},
	{Name: "deaf to every signal", Over: "stdio", Faults: []string{"P3"}, Plays: []string{"ignore-term"}, play: ignoresSignals,
		Story: "A server ignores the end of its input and SIGTERM."},
	{Name: "the client is killed", Over: "stdio", Faults: []string{"P1"}, alone: true, play: clientKilled,
		Story: "The client dies of SIGKILL, with a good server, a launcher's tree and a server that ignores the end of its input."},
	{Name: "secrets of the environment", Over: "stdio", Faults: []string{"X3"}, play: environmentSecrets,
		Story: "A variable of the client's environment, declared for no server, must not reach one."},
	{Name: "sixty servers", Over: "stdio", Faults: []string{"P13", "I12"}, exclusive: true, alone: true, play: sixtyServers,
		Story: "Sixty servers are asked for at once, each is called, and all are left."},
}

// ordinaryDay comes first, because a client, or an adapter, that fails it makes all other cases meaningless.
func ordinaryDay(a *caseRun) {
	p := a.newServer("good")
	a.scoreConnect(p)
	list := a.listTools(p)
	a.scorePoint(slices.Contains(list.Tools, "echo"), "its tools are listed", "%d tools; %s", len(list.Tools), list.errorText())
	echo, ok := a.callEcho(p, "hello")
	a.scorePoint(ok, "a call is answered", "%s", echo.errorText())
	closed := a.closeServer(p)
	a.scorePoint(closed.OK && closed.took < ampleTime, "it is closed", "%s", closed.errorText())
	a.scoreNoProcess("no process is left")
}

// scoreNoProcess gives the point for a clean end: no process is left. It is left out where processes cannot be counted.
func (a *caseRun) scoreNoProcess(must string) {
	if !canCountProcesses {
		return
	}
	remaining, ok := a.awaitNoProcess(10 * time.Second)
	a.scorePoint(ok, must, "%d still run 10s later", len(remaining))
}

// silentServer shows whether servers are connected one after the other.
func silentServer(a *caseRun) {
	// The good server connects half a second after the silent one, so that it must overtake it.
	silent, good := a.newServer("silent"), a.newServer("good")
	// A client that connects to one server after the other would block here until the limit.
	waiting := a.beginConnect(silent, 6*time.Second)
	a.sleepContext(500 * time.Millisecond)
	got := a.connectServer(good)
	a.scorePoint(got.OK, "the other server connects", "%s", got.errorText())
	_, ok := a.callEcho(good, "meanwhile")
	a.scorePoint(ok, "the other server is called", "no answer")
	end := <-waiting
	a.scorePoint(!end.OK && !end.hung, "the connect to the silent one ends with an error", "%s", end.errorText())
}

// silentAboutEra is an older server that ignores methods it does not know, against the specification. A client has to fall back
// to initialize after a while; how long it waits is not judged.
func silentAboutEra(a *caseRun) {
	p := a.newServer("silent-on-probe")
	a.scoreConnect(p)
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "no answer")
}

// diesOfEra needs a second process: the one that was asked has ended. A client that reports the end as a failure of the server
// shuts out servers that worked until then.
func diesOfEra(a *caseRun) {
	p := a.newServer("dies-on-probe")
	a.scoreConnect(p)
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "no answer")
}

// outputNoise prints what print statements and loggers of real servers do. The specification forbids it, and a client that
// closes the connection for it shuts those servers out.
func outputNoise(a *caseRun) {
	p := a.newServer("noise")
	a.scoreConnect(p)
	right := 0
	for i := range 5 {
		if _, ok := a.callEcho(p, fmt.Sprint(i)); ok {
			right++
		}
	}
	a.scorePoint(right == 5, "five calls are answered", "%d are", right)
	a.scorePoint(len(a.startTimes(p)) == 1, "it is not restarted", "it is")
}

// maxClientMemory is more memory, in bytes, than a client needs for any server of the cases.
const maxClientMemory = 512 << 20

// scoreMemory watches the client's memory for a while. It kills a client that takes too much, before the machine runs out of
// memory.
func (a *caseRun) scoreMemory(d time.Duration) {
	if !canCountProcesses {
		return
	}
	const must = "the client stays below 512 MiB of memory"
	for end := time.Now().Add(d); time.Now().Before(end); a.sleepContext(20 * time.Millisecond) {
		if m := a.clientMemory(); m > maxClientMemory {
			a.scorePoint(false, must, "it took %d MiB and was ended", maxClientMemory>>20)
			a.driver.kill()
			return
		}
	}
	a.scorePoint(true, must, "")
}

// outputFlood prints faster than any client needs to read. The client may close the connection, skip the lines or slow the
// server by not reading; it may not collect them.
func outputFlood(a *caseRun) {
	p, other := a.newServer("flood"), a.newServer("good")
	a.connectServer(other)
	waiting := a.beginConnect(p, 10*time.Second)
	<-waiting
	// The flood begins after the list.
	a.listTools(p)
	a.scoreMemory(5 * time.Second)
	_, ok := a.callEcho(other, "x")
	a.scorePoint(ok, "the other server is called", "no answer")
	a.closeServer(p)
	a.scoreEnd(p)
}

// scoreEnd gives the point for a server whose process has ended after close.
// 15 s are more than a shutdown takes that waits some seconds between the end of input, SIGTERM and SIGKILL.
func (a *caseRun) scoreEnd(p *testServer) {
	if !canCountProcesses {
		return
	}
	ok := a.waitFor(15*time.Second, func() bool { return !a.isRunning(p) })
	a.scorePoint(ok, "its process is gone after close", "it still runs 15s later")
}

// isRunning reports whether a process of a server runs.
func (a *caseRun) isRunning(p *testServer) bool { return len(processesWith(p.records)) > 0 }

// A pipe holds 64 KiB: the server of fullStderr blocks in its write, before it reads its first message, unless the client
// drains standard error from the start.
func fullStderr(a *caseRun) {
	p := a.newServer("stderr-flood")
	a.scoreConnect(p)
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "no answer")
}

// hugeLine lets a client choose between 32 MiB of memory and an error, and judges only what comes after.
func hugeLine(a *caseRun) {
	p := a.newServer("huge-line")
	a.connectServer(p)
	got := a.callTool(p, "huge", 30*time.Second, map[string]any{})
	a.scorePoint(!got.hung, "the call ends", "%s", got.errorText())
	// The client may restart the server for the refused line, so the next call gets time.
	ok := a.waitFor(ampleTime, func() bool { _, ok := a.callEcho(p, "after it"); return ok })
	a.scorePoint(ok, "the next call is answered", "no answer within %s", ampleTime)
	a.scorePoint(len(a.startTimes(p)) == 1, "the server is not restarted for it", "it is")
}

// endlessLine has no end that a reader of lines could wait for: only a bound on the length of a line keeps the client's memory
// small.
func endlessLine(a *caseRun) {
	p, other := a.newServer("endless-line"), a.newServer("good")
	a.connectServer(other)
	<-a.beginConnect(p, 10*time.Second)
	a.listTools(p)
	a.scoreMemory(6 * time.Second)
	_, ok := a.callEcho(other, "x")
	a.scorePoint(ok, "the other server is called", "no answer")
}

// crashInCall uses calls to see the restart, so that a client may start the server at once or when it is needed.
func crashInCall(a *caseRun) {
	p := a.newServer("good")
	a.connectServer(p)
	// The limit is far above 10 s: a client that waits for it has not noticed the end of the process.
	got := a.callTool(p, "crash", 30*time.Second, map[string]any{"code": 3})
	a.scorePoint(!got.OK && got.took < 10*time.Second, "the call ends when the process does", "%s after %s", got.errorText(), got.took.Round(time.Second))
	ok := a.waitFor(ampleTime, func() bool { _, ok := a.callEcho(p, "again"); return ok })
	a.scorePoint(ok, "a later call is answered", "none within %s", ampleTime)
	if canCountProcesses {
		// A parent that does not wait for its children keeps a process id for each of them.
		none := a.waitFor(5*time.Second, func() bool { return a.countClientZombies() == 0 })
		a.scorePoint(none, "the dead process is reaped", "it is still a zombie")
	}
}

// crashLoop bounds starts at 12 in 10 s, which leaves a client one start for each list that the case asks for, and two more.
func crashLoop(a *caseRun) {
	p := a.newServer("exits-after-list")
	// Ten lists in ten seconds give the client ten reasons to start the server again.
	<-a.beginConnect(p, 5*time.Second)
	for range 10 {
		a.listTools(p)
		a.sleepContext(time.Second)
	}
	starts := a.startTimes(p)
	a.scorePoint(len(starts) > 0, "it is started", "it is not")
	a.scorePoint(len(starts) <= 12, "it is started at most 12 times in 10s", "%d starts", len(starts))
	// Starts closer than 100 ms have no pause between them at all.
	hasty := 0
	for i := 1; i < len(starts); i++ {
		if time.Duration(starts[i]-starts[i-1]) < 100*time.Millisecond {
			hasty++
		}
	}
	a.scorePoint(hasty == 0, "there are at least 100ms between two starts", "%d times there were less", hasty)
}

// missingProgram is the most common mistake in a configuration. The error must name the program, because the user has to find
// the entry.
func missingProgram(a *caseRun) {
	p := a.newServer("good")
	p.connectCommand.Command = filepath.Join(a.dir, "no-such-program")
	got := a.connectServer(p)
	a.scorePoint(!got.OK && !got.hung && got.took < 10*time.Second, "connect ends with an error", "%s", got.errorText())
	a.scorePoint(strings.Contains(got.Error, "no-such-program"), "the error names the program", "%s", got.errorText())
}

// wrongVersion ends the handshake in disagreement. The process waits for a client that has given it up, and stays for ever if
// the client only forgets it.
func wrongVersion(a *caseRun) {
	p := a.newServer("wrong-version")
	got := a.connectServer(p)
	a.scorePoint(!got.OK && !got.hung, "connect ends with an error", "%s", got.errorText())
	a.scoreNoProcess("its process does not stay")
}

// A signal to the direct child of launcherTree reaches a shell, or npx, and not the server below it.
func launcherTree(a *caseRun) {
	p := a.newServer("launcher", "depth=2")
	a.scoreConnect(p)
	a.closeServer(p)
	a.scoreNoProcess("nothing of the tree is left after close")
}

// The child of outlivingChild keeps the pipe open after its parent has ended: a client that waits for the end of output hangs
// in close.
func outlivingChild(a *caseRun) {
	p := a.newServer("grandchild")
	a.scoreConnect(p)
	closed := a.closeServer(p)
	a.scorePoint(!closed.hung && closed.took < ampleTime, "close ends", "%s", closed.errorText())
	a.scoreNoProcess("the child is gone after close")
}

// ignoresSignals can only be ended by SIGKILL, the last step of the specification's shutdown over stdio.
func ignoresSignals(a *caseRun) {
	p := a.newServer("ignores-signals")
	a.scoreConnect(p)
	closed := a.closeServer(p)
	a.scorePoint(!closed.hung && closed.took < ampleTime, "close ends", "%s", closed.errorText())
	a.scoreNoProcess("its process is killed")
}

// clientKilled leaves the client no time to act: what ends the servers must have been arranged when they were started. The good
// server ends by itself at the end of its input, so that its point shows that the pipes are closed.
func clientKilled(a *caseRun) {
	good, tree, stubborn := a.newServer("good"), a.newServer("launcher", "depth=2"), a.newServer("ignores-eof")
	for _, p := range []*testServer{good, tree, stubborn} {
		a.scoreConnect(p)
	}
	if !canCountProcesses {
		return
	}
	a.driver.kill()
	for _, c := range []struct {
		p    *testServer
		must string
	}{{good, "the good server ends"}, {tree, "the launcher's tree ends"}, {stubborn, "the stubborn server ends"}} {
		ok := a.waitFor(12*time.Second, func() bool { return !a.isRunning(c.p) })
		a.scorePoint(ok, c.must, "it still runs 12s later")
	}
}

// The secret stands in the adapter's environment under a name that no server has declared. A client that passes its whole
// environment on gives every server the keys of all others.
func environmentSecrets(a *caseRun) {
	p := a.newServer("good")
	a.connectServer(p)
	got := a.callTool(p, "env", ampleTime, map[string]any{"name": secretName})
	a.scorePoint(got.OK && a.countRequests(p, "tools/call") == 1, "the server is asked", "%s", got.errorText())
	a.scorePoint(got.OK && textOf(got) != secret, "the server does not know the secret", "it does")
}

// sixtyServers starts more processes than the machine has processors. Two minutes are the limit for all of them together; the
// case measures no speed.
func sixtyServers(a *caseRun) {
	const many = 60
	all := make([]*testServer, many)
	answers := make([]answer, many)
	// Each goroutine ends with its answer, which sendCommand guarantees.
	var wait sync.WaitGroup
	for i := range all {
		all[i] = a.newServer("good")
		waiting := a.beginConnect(all[i], 2*time.Minute)
		wait.Go(func() { answers[i] = <-waiting })
	}
	wait.Wait()
	connected := 0
	for _, got := range answers {
		if got.OK {
			connected++
		}
	}
	a.scorePoint(connected == many, "all connect", "%d do", connected)
	right := 0
	for i, p := range all {
		if _, ok := a.callEcho(p, fmt.Sprint(i)); ok {
			right++
		}
	}
	a.scorePoint(right == many, "all are called", "%d answer", right)
	a.scorePoint(a.driver.quit(40*time.Second), "the client ends when it is told to quit", "it still runs 40s later")
	a.scoreNoProcess("no process is left")
}
