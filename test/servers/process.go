package servers

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// processFaults are servers that end, start or live in a way that a client must survive.
var processFaults = []Kind{
	{"exits-at-once", exitsAtOnce,
		"writes text= to standard error and exits with code=3 before reading anything"},
	{"crash-after", crashAfter,
		"behaves for after=1s from its start, then exits with code=1"},
	{"exits-after-list", exitsAfterList,
		"exits with code=1 as soon as it has answered tools/list times=1 times: connects, then drops"},
	{"dies-mid-call", diesMidCall,
		"reads a tools/call and exits with code=1 without an answer"},
	{"answers-and-dies", answersAndDies,
		"answers a tools/call and exits with code=1 in the same moment"},
	{"dies-on-probe", diesOnProbe,
		"exits with code=1 if its first message is not initialize, as some servers do on server/discover"},
	{"slow-start", slowStart,
		"sleeps for after=3s before it reads anything, then behaves"},
	{"ignores-signals", ignoresSignals,
		"ignores SIGTERM, SIGINT and the end of its input; only SIGKILL ends it, or for=60s"},
	{"ignores-eof", ignoresEOF,
		"ignores the end of its input for=60s; SIGTERM ends it"},
	{"grandchild", leavesGrandchild,
		"starts a child that holds standard output open for=60s and outlives it; exits after=0s if that is " +
			"not 0"},
	{"own-session", ownSession,
		"behaves, and has a child that lives for=60s in a session of its own, out of reach of a process group"},
	{"launcher", launchesServer,
		"is a tree like npx → sh → node: depth=2 processes that wait, and a good server under them"},
	{"stops-reading", stopsReading,
		"answers initialize and tools/list, then never reads its input again, for=60s"},
	{"closes-stdout", closesStdout,
		"answers initialize and tools/list, then closes its output and lives on for=60s"},
}

// sleeper is the name of the child that other fixtures start: it does nothing for=60s. It is no server and not in
// Kinds.
const sleeper = "sleeper"

// runSleeper sleeps; with signals=ignore only SIGKILL ends it before.
func runSleeper(p params) int {
	if p.textOr("signals", "") == "ignore" {
		ignoreSignals()
	}
	time.Sleep(p.durationOr("for", time.Minute))
	return 0
}

// exitsAtOnce is a server that cannot start: its reason is on standard error only.
func exitsAtOnce(p params) int {
	fmt.Fprintln(os.Stderr, p.textOr("text", "fixture: cannot start: no licence found"))
	return p.intOr("code", 3)
}

// crashAfter exits from a timer's goroutine, at any point of the conversation.
func crashAfter(p params) int {
	time.AfterFunc(p.durationOr("after", time.Second), func() {
		fmt.Fprintln(os.Stderr, "fixture: panic: its time has come")
		os.Exit(p.intOr("code", 1))
	})
	return newServer(p).serve()
}

// exitsAfterList is ready for a moment and then gone, which must count as a failure and not as a success.
func exitsAfterList(p params) int {
	s := newServer(p)
	var answered atomic.Int64
	s.handlers["tools/list"] = func(s *server, m message) {
		s.answerBySpec(m)
		if answered.Add(1) == int64(p.intOr("times", 1)) {
			os.Exit(p.intOr("code", 1))
		}
	}
	return s.serve()
}

func diesMidCall(p params) int {
	s := newServer(p)
	s.handlers["tools/call"] = func(*server, message) { os.Exit(p.intOr("code", 1)) }
	return s.serve()
}

// answersAndDies exits when the answer is written, which the client may read before or after it sees the end of the
// process.
func answersAndDies(p params) int {
	s := newServer(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		s.answerBySpec(m)
		os.Exit(p.intOr("code", 1))
	}
	return s.serve()
}

// diesOnProbe exits at server/discover, so that the client has to start it again for initialize.
func diesOnProbe(p params) int {
	s := newServer(p)
	first, ok := s.readMessage()
	if !ok {
		return 0
	}
	if first.Method != "initialize" {
		fmt.Fprintln(os.Stderr, "fixture: expected initialize, got "+first.Method)
		return p.intOr("code", 1)
	}
	s.answerBySpec(first)
	return s.serve()
}

func slowStart(p params) int {
	time.Sleep(p.durationOr("after", 3*time.Second))
	return newServer(p).serve()
}

func ignoresSignals(p params) int {
	ignoreSignals()
	return ignoresEOF(p)
}

// ignoresEOF behaves until its input ends, and then lives on until for= has passed since its start.
func ignoresEOF(p params) int {
	end := time.Now().Add(p.durationOr("for", time.Minute))
	newServer(p).serve()
	time.Sleep(time.Until(end))
	return 0
}

// childCommand returns a command that runs this program as another fixture, with the standard files of this one.
func childCommand(kind string, parameters ...string) *exec.Cmd {
	command, args := Command(kind, parameters...)
	cmd := exec.Command(command, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

func startChild(cmd *exec.Cmd) {
	if err := cmd.Start(); err != nil {
		failFixture(err.Error())
	}
}

// leavesGrandchild starts a child that inherits standard output. A client that waits for the end of the output waits
// for the child, too.
func leavesGrandchild(p params) int {
	c := childCommand(sleeper, "for="+p.textOr("for", "1m"), "signals="+p.textOr("signals", ""), "record="+p.textOr("record", ""))
	// A child that shared the input would take bytes of the client's messages.
	c.Stdin = nil
	startChild(c)
	s := newServer(p)
	s.addPIDTool(c)
	if after := p.durationOr("after", 0); after > 0 {
		time.AfterFunc(after, func() { os.Exit(p.intOr("code", 1)) })
	}
	return s.serve()
}

// ownSession starts a child in a session of its own, which a signal to the process group of the server does not reach.
func ownSession(p params) int {
	c := childCommand(sleeper, "for="+p.textOr("for", "1m"), "record="+p.textOr("record", ""))
	c.Stdin, c.Stdout, c.Stderr = nil, nil, nil
	c.SysProcAttr = sessionOfItsOwn()
	startChild(c)
	s := newServer(p)
	s.addPIDTool(c)
	return s.serve()
}

// addPIDTool adds a tool that answers with the process id of a child, so that a test can look whether it still runs.
func (s *server) addPIDTool(c *exec.Cmd) {
	s.extra = append(s.extra, bareDefinition("child"))
	s.tool = func(s *server, m message, call callParams) {
		if call.Name != "child" {
			s.sendError(m, -32602, "Unknown tool: "+call.Name)
			return
		}
		s.sendText(m, strconv.Itoa(c.Process.Pid))
	}
}

// launchesServer starts itself one level deeper until the last level is a good server, and passes its other parameters
// on.
func launchesServer(p params) int {
	depth := p.intOr("depth", 2)
	kind, parameters := "good", []string{}
	if depth > 1 {
		kind, parameters = "launcher", append(parameters, "depth="+strconv.Itoa(depth-1))
	}
	for k, v := range p {
		if k != "depth" {
			parameters = append(parameters, k+"="+v)
		}
	}
	c := childCommand(kind, parameters...)
	startChild(c)
	// Like npx, it ends with the exit code of its child; the error of Wait says the same as the code.
	_ = c.Wait()
	return max(c.ProcessState.ExitCode(), 0)
}

// answerHandshake answers messages in order and returns true after the first tools/list; false means that the input
// ended before.
func (s *server) answerHandshake() bool {
	for {
		m, ok := s.readMessage()
		if !ok {
			return false
		}
		s.answerBySpec(m)
		if m.Method == "tools/list" && !strings.Contains(string(m.Params), "cursor") {
			return true
		}
	}
}

// stopsReading leaves its input pipe to fill up, until the client's writes block.
func stopsReading(p params) int {
	if newServer(p).answerHandshake() {
		time.Sleep(p.durationOr("for", time.Minute))
	}
	return 0
}

// closesStdout closes its output and lives on: the client sees the end of the output and has to stop the process.
func closesStdout(p params) int {
	s := newServer(p)
	if s.answerHandshake() {
		s.out.Close()
		time.Sleep(p.durationOr("for", time.Minute))
	}
	return 0
}
