// Package client finds and starts the daemon, and greets it: for a bridge, which then passes on messages, for a command that uses the
// servers that the daemon keeps, and for those that hand servers to it or end it.
//
// How it fits: package daemon is the other side, and reads and writes the lines of this package (hello.go). Package control owns the
// place of the socket.
//
// Guarantees: of many commands that start a daemon at once one does, under a lock; the daemon has a session of its own and outlives the
// command that started it.
//
// Not promised: that the daemon has the servers of the directory as they are configured; the control socket tells that.
package client

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Protocol is the version of what a bridge and a daemon say to each other before they pass on messages: lines of JSON, of which the
// hello and the first answer never change their meaning, so that two versions can refuse each other by name.
//
//	bridge  hello    {"protocol": 1, "version": …, "built": …, "dir": …}
//	daemon  welcome  {"protocol": 1, "want": ["TOKEN", …]}          or  {"error": …}  or  {"draining": true}
//	bridge  values   {"env": {"TOKEN": …}}
//	daemon  welcome  {"protocol": 1, "ready": true, "notes": […]}   or  {"error": …}
//
// After that each line is a message of MCP, but for three: see DrainLine.
const Protocol = 1

// OldestProtocol is the oldest version that a daemon speaks. A bridge lives as long as its agent, and goes on after an upgrade with the
// daemon of the newer program, so that this number grows only when no such bridge is left.
const OldestProtocol = 1

const (
	// DrainLine tells a bridge that the daemon is ending: it sends nothing more, and confirms that with DrainedLine. What the daemon
	// has got by then it answers.
	DrainLine   = `{"mcpvisor":"draining"}`
	DrainedLine = `{"mcpvisor":"drained"}`
	// StopLine is the DrainLine of a daemon that a person has ended: the bridge starts the next one when its agent asks for something.
	StopLine = `{"mcpvisor":"draining","next":"asked"}`
)

// The actions of a hello.
const (
	// ActionServe asks for the servers of a directory.
	ActionServe = ""
	// ActionEnd asks the daemon to end, in good order.
	ActionEnd = "end"
	// ActionHold asks for the servers of a directory without an agent: they run until the daemon is asked to end.
	ActionHold = "hold"
	// ActionAttach asks for the servers of a directory for a command, which uses them over the control socket. They are kept as long
	// as the connection is open. When the command ends its side, the daemon says what becomes of it.
	ActionAttach = "attach"
)

// Hello is the first line of a bridge.
type Hello struct {
	Protocol int `json:"protocol"`
	// Version and Built, the time of the program's file in nanoseconds, decide whether the daemon gives way to a bridge of a newer program.
	Version string `json:"version"`
	Built   int64  `json:"built"`
	Action  string `json:"action,omitempty"`
	// Dir is the directory in which the agent works.
	Dir string `json:"dir,omitempty"`
	// View is the view of the configuration that the agent gets; empty means everything. A daemon confirms it in its last Welcome, because
	// one that does not know views would show everything.
	View string `json:"view,omitempty"`
	// Waited is how long the agent has waited for its servers, in milliseconds: from the start of the bridge, or from the end of the
	// daemon before. It is a duration, because a clock may be set meanwhile; 0 if the agent does not wait.
	Waited int64 `json:"waited,omitempty"`
	// Ends says that the daemon ends with this connection, unless somebody else uses it then: its peer has started it.
	Ends bool `json:"ends,omitempty"`
}

// Welcome is an answer of the daemon.
type Welcome struct {
	// Protocol is that of the hello, if the daemon speaks it.
	Protocol int    `json:"protocol"`
	Version  string `json:"version,omitempty"`
	PID      int    `json:"pid,omitempty"`
	// Want names the variables that the approved entries mention.
	Want []string `json:"want,omitempty"`
	// Ready says that messages may follow. Notes are for the person.
	Ready bool     `json:"ready,omitempty"`
	Notes []string `json:"notes,omitempty"`
	// View is that of the hello.
	View string `json:"view,omitempty"`
	// Draining says that the daemon ends, so that another one can begin.
	Draining bool `json:"draining,omitempty"`
	// Short says that Error is a shortage, which may be over in a moment.
	Short bool `json:"short,omitempty"`
	// Replaced says that the other one is of a newer program.
	Replaced bool   `json:"replaced,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Values is the second line of a bridge.
type Values struct {
	Env map[string]string `json:"env"`
}

// maxHello bounds each line of the greeting.
const maxHello = 1 << 20

// GreetingTime bounds the greeting: a daemon that does not answer is no daemon, and a peer that says nothing is cut.
const GreetingTime = 15 * time.Second

// errDraining says that the daemon is ending, and that the next one may be started.
var errDraining = errors.New("the daemon is ending")

// WriteLine writes a value as one line.
func WriteLine(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ReadLine reads a line into a value.
func ReadLine(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxHello:
			return errors.New("the greeting is too long")
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return err
		}
		return rawjson.Unmarshal(bytes.TrimSpace(line), v)
	}
}

// ownHello returns the hello of this program.
func ownHello() Hello {
	return Hello{Protocol: Protocol, Version: supervisor.Version(), Built: BuiltTime()}
}

// BuiltTime returns the time of this program's file; 0 if it is not known.
func BuiltTime() int64 {
	self, err := os.Executable()
	if err != nil {
		return 0
	}
	return FileTime(self)
}

// FileTime returns the time of a program's file; 0 if it is not there.
func FileTime(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// introduce tells the daemon which servers are wanted, and gives it the variables that it asks for. It returns a reader of what
// follows, and notes for the person.
func (d *dialer) introduce(conn net.Conn) (*bufio.Reader, []string, error) {
	_ = conn.SetDeadline(time.Now().Add(GreetingTime)) // without it a dead daemon is noticed later
	r := bufio.NewReaderSize(conn, 64<<10)
	h := ownHello()
	h.Action, h.Dir, h.View, h.Ends = d.action, d.dir, d.view, d.started
	if !d.began.IsZero() {
		h.Waited = max(time.Since(d.began).Milliseconds(), 1)
	}
	var answer Welcome
	if err := exchangeLines(conn, r, h, &answer); err != nil {
		return nil, nil, err
	}
	given := Values{Env: map[string]string{}}
	for _, name := range answer.Want {
		if v, ok := d.lookup(name); ok {
			given.Env[name] = v
		}
	}
	if err := exchangeLines(conn, r, given, &answer); err != nil {
		return nil, nil, err
	}
	if !answer.Ready {
		return nil, nil, errors.New("the daemon does not say that it is ready")
	}
	if answer.View != d.view {
		return nil, nil, &messages.Error{Op: "connect", Class: messages.ClassUnsupported,
			Text: fmt.Sprintf("the daemon (process %d, version %s) knows no views", answer.PID, messages.Line(answer.Version, 40)),
			Fix:  "end it with: mcpvisor down"}
	}
	_ = conn.SetDeadline(time.Time{})
	return r, answer.Notes, nil
}

// exchangeLines writes a line and reads the answer of the daemon.
func exchangeLines(conn net.Conn, r *bufio.Reader, line any, answer *Welcome) error {
	// A daemon that cannot see who has connected refuses before it reads anything: the write fails, and the reason is there to be read.
	unsent := WriteLine(conn, line)
	*answer = Welcome{}
	if err := ReadLine(r, answer); err != nil {
		return cmp.Or(unsent, err)
	}
	switch {
	case answer.Draining:
		return errDraining
	case answer.Error != "":
		refusal := &messages.Error{Op: "connect", Class: messages.ClassInvalid, Text: messages.Line(answer.Error, 400)}
		if answer.Short {
			refusal.Err = errShortage
		}
		return refusal
	case unsent != nil:
		return unsent
	case answer.Protocol != Protocol:
		return &messages.Error{Op: "connect", Class: messages.ClassUnsupported,
			Text: fmt.Sprintf("the daemon (process %d, version %s) speaks another protocol than this mcpvisor: %d, not %d", answer.PID,
				messages.Line(answer.Version, 40), answer.Protocol, Protocol), Fix: "end it with: mcpvisor down"}
	}
	return nil
}
