package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// asking is the configuration of a project with a server that asks what a call tells it to ask.
const asking = `{"mcpServers": {
	"one": {"command": "fixture", "args": ["mcp-fixture", "asks"], "era": "legacy"},
	"more": {"command": "fixture", "args": ["mcp-fixture", "offers"], "era": "legacy"}}}`

const (
	askForm = `params:={"message":"who\u001b[31m are you?","requestedSchema":{"type":"object","required":["name"],` +
		`"properties":{"name":{"type":"string","minLength":2},"age":{"type":"integer","default":30}}}}`
	askPage = `params:={"mode":"url","message":"sign in","url":"https://example.com/x","elicitationId":"1"}`
)

// exits waits until a command on a terminal has ended, and checks its exit code.
func (t *pseudoTerminal) exits(code int) {
	t.t.Helper()
	select {
	case got := <-t.ended:
		if got != code {
			t.t.Errorf("exit code %d, not %d:\n%q", got, code, t.text())
		}
	case <-time.After(patience):
		t.t.Fatalf("it does not end:\n%q", t.text())
	}
}

// asks starts a command on a terminal, with the configuration of the place.
func (p *place) asks(args ...string) *pseudoTerminal {
	p.t.Helper()
	return p.onTerminal(nil, append([]string{"--config", "c.json"}, args...)...)
}

// TestAQuestionIsAnsweredAtTheTerminal fills in a form: the server is named and its text escaped, and a value that does not fit
// is asked for again.
func TestAQuestionIsAnsweredAtTheTerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asking)
	term := p.asks("call", "one", "ask", "method=elicitation/create", askForm)
	at := term.shows(0, `The server "one" asks you:\r\n  \| who�\[31m are you\?\r\n`)
	at = term.shows(at, `\[a\]nswer, \[d\]ecline or \[c\]ancel\? \(Ctrl-C cancels at any time\) `)
	term.types("a\r")
	at = term.shows(at, `field 1 of \d: "name": text, at least 2 characters\r\n> `)
	term.types("A\r")
	at = term.shows(at, `It has 1 character; it takes at least 2 characters\.\r\n> `)
	term.types("Ann\r")
	at = term.shows(at, `field 2 of \d: "age": whole number, optional\r\n\[30, - leaves it out\] > `)
	term.types("\r")
	at = term.shows(at, `This is what "one" gets:\r\n  "name": Ann\r\n  "age": 30\r\n\[s\]end it`)
	term.types("s\r")
	term.shows(at, `result \{"action":"accept","content":\{"name":"Ann","age":30\}\}`)
	term.exits(0)
}

// TestCtrlCIsTheQuestionsAndThenTheCommands checks that the first Ctrl-C cancels the question while the call goes on, and that
// the next one ends the command.
func TestCtrlCIsTheQuestionsAndThenTheCommands(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asking)
	term := p.asks("call", "one", "ask", "method=elicitation/create", askForm)
	at := term.shows(0, `\[a\]nswer`)
	term.types("\x03")
	at = term.shows(at, `the question is cancelled`)
	term.shows(at, `result \{"action":"cancel"\}`)
	term.exits(0)

	term = p.asks("up")
	term.shows(0, regexp.QuoteMeta(terminal.AnsiEnter))
	at = term.shows(0, `2 servers: [^\r]*2 connected`)
	caller := p.start("--config", "c.json", "call", "one", "ask", "method=elicitation/create", askForm) // it has no terminal
	at = term.shows(at, regexp.QuoteMeta(terminal.AnsiLeave)+`\r\nThe server "one" asks you`)
	term.types("\x03")
	at = term.shows(at, `the question is cancelled[^\x1b]*`+regexp.QuoteMeta(terminal.AnsiEnter)) // the table is back
	if line := <-caller.lines; line != `result {"action":"cancel"}` {
		t.Errorf("the caller got %q", line)
	}
	term.shows(at, `2 servers: [^\r]*2 connected`)
	term.types("\x03")
	if code := term.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestAQuestionGoesToTheCallersTerminal checks that a question of a server reaches the terminal of the command that called it,
// and not that of the running up.
func TestAQuestionGoesToTheCallersTerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asking)
	up := p.asks("up")
	up.shows(0, `2 servers: [^\r]*2 connected`)
	term := p.asks("call", "one", "ask", "method=elicitation/create", askPage)
	at := term.shows(0, `using the running mcpvisor up`)
	at = term.shows(at, `The server "one" asks you to open a web page:\r\n  \| sign in\r\n  page: https://example.com/x\r\n`+
		`  host: example.com\r\n`)
	at = term.shows(at, `\[o\]pen it in the browser, \[a\]gree and open it yourself, \[d\]ecline or \[c\]ancel\? `)
	term.types("\r")
	at = term.shows(at, `Type open, agree, decline or cancel\.`)
	term.types("a\r")
	term.shows(at, `result \{"action":"accept"\}`)
	term.exits(0)
	if strings.Contains(up.text(), "asks you") {
		t.Error("mcpvisor up has asked too")
	}
	up.types("\x03")
	if code := up.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestAnUpWithoutATerminalAsksItsCallers checks --callers-answer: a caller with a terminal is asked, and without one the server
// learns that no person could be asked.
func TestAnUpWithoutATerminalAsksItsCallers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asking)
	up := p.start("--config", "c.json", "up", "--callers-answer")
	up.says("(one|more): connected")
	up.says("(one|more): connected")
	term := p.asks("call", "one", "ask", "method=elicitation/create", askForm)
	at := term.shows(0, `The server "one" asks you:`)
	term.types("d\r")
	term.shows(at, `result \{"action":"decline"\}`)
	term.exits(0)
	caller := p.start("--config", "c.json", "call", "one", "ask", "method=elicitation/create", askForm)
	if line := <-caller.lines; !strings.Contains(line, "nobody could be asked") {
		t.Errorf("the caller got %q", line)
	}
	up.signal(syscall.SIGINT)
	if code := up.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestLogsAreFollowed checks that logs --follow prints each message once, also after a reconnect, until Ctrl-C.
func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, strings.Replace(asking, `"offers"]`, `"offers"], "logLevel": "alert"`, 1))
	up := p.start("--config", "c.json", "up")
	up.says("more: connected")
	logs := p.start("--config", "c.json", "logs", "more", "--follow", "--level", "emergency")
	logs.says(`emergency  fixture: a message of �\[31memergency`)
	p.start("--config", "c.json", "reconnect", "more").says("more: connected")
	logs.says(`emergency  fixture: a message of �\[31memergency`)
	for _, line := range logs.said {
		if strings.Contains(line, "alert") {
			t.Errorf("a message that is not severe enough: %q", line)
		}
	}
	logs.signal(syscall.SIGINT)
	if code := logs.ends(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, logs.stderr.String())
	}
	up.signal(syscall.SIGINT)
	if code := up.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTheModelIsAskedAfterAYes checks that a sampling command runs only after the person's yes, and not after a no.
func TestTheModelIsAskedAfterAYes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asking)
	sample := []string{"--sampling-command", "model good", "call", "one", "ask", "method=sampling/createMessage",
		`params:={"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"a \u001b[2Jriddle"}}]}`}
	term := p.asks(sample...)
	at := term.shows(0, `The server "one" wants an answer of your model\. It asks:\r\n  \| user: a �\[2Jriddle\r\n`+
		`It would be given to: model good\r\n`)
	term.types("y\r")
	term.shows(at, `result \{"role":"assistant","model":"m"`)
	term.exits(0)
	term = p.asks(sample...)
	term.shows(0, `Let it have this request and its next 19\? \[y\]es, this one \[o\]nce or \[n\]o\?`)
	term.types("n\r")
	term.shows(0, `error \{"code":-1`)
	term.exits(0)
}

// TestTheTerminalIsSpared checks that bytes which are no text are kept from a terminal, and that progress takes one line.
func TestTheTerminalIsSpared(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asking)
	term := p.asks("read", "bin://picture")
	term.shows(0, `the resource is no text but 8 B of image/png; write it to a file with --output FILE`)
	term.exits(1)
	if strings.Contains(term.text(), "PNG") {
		t.Errorf("%q", term.text())
	}
	term = p.asks("call", "more", "count", "to=3", "--progress")
	at := term.shows(0, `\r\x1b\[2K1 of 3 \(33 %\): step �\[2J1`)
	at = term.shows(at, `\r\x1b\[2K3 of 3 \(100 %\)`)
	term.shows(at, `\r\x1b\[2Kcounted to 3\r\n`)
	term.exits(0)
}
