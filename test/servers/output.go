package servers

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// outputFaults are servers with faults in the bytes that they write.
var outputFaults = []Kind{
	{"noise", noisyOutput,
		"writes a banner of lines=3 lines to standard output first and a log line before each answer, " +
			"otherwise behaves"},
	{"flood", floodsOutput,
		"after tools/list writes noise lines to standard output without end, as fast as they are read"},
	{"huge-line", hugeLine,
		"its tool huge answers with one line of size=33554432 bytes (32 MiB), otherwise behaves"},
	{"endless-line", endlessLine,
		"after tools/list writes a line that never ends"},
	{"half-line", halfLine,
		"writes half of the answer to a tools/call and exits with code=1"},
	{"stderr-flood", stderrFlood,
		"writes size=4194304 bytes (4 MiB) to standard error before it reads, and a line with each answer: it " +
			"hangs if nobody drains"},
	{"odd-lines", oddLines,
		"sends JSON that is no JSON-RPC, an empty line, CRLF line ends and a batch between its answers"},
	{"hostile-text", hostileText,
		"has terminal escapes, bidi overrides and invisible characters in its name, instructions, tools, " +
			"results and standard error"},
}

// noisyOutput writes log lines to the channel of the protocol, the commonest fault of real servers.
func noisyOutput(p params) int {
	s := newServer(p)
	for i := range p.intOr("lines", 3) {
		s.sendLine(fmt.Sprintf("  fixture v1.0.0: starting up, step %d …", i))
	}
	loud := func(s *server, m message) {
		if m.ID != nil {
			s.sendLine("[info] handling " + m.Method)
		}
		s.answerBySpec(m)
	}
	for _, method := range []string{"initialize", "ping", "tools/list", "tools/call"} {
		s.handlers[method] = loud
	}
	return s.serve()
}

// floodsOutput writes without end after the handshake. It needs no pause: the pipe stops it while the client does not
// read.
func floodsOutput(p params) int {
	s := newServer(p)
	if !s.answerHandshake() {
		return 0
	}
	block := []byte(strings.Repeat("[debug] still here, still talking\n", 256))
	for {
		// The write fails when the client closes its end, unless SIGPIPE ends the process first.
		if _, err := s.out.Write(block); err != nil {
			return 1
		}
	}
}

// hugeLine answers with a line above the bound of one message.
func hugeLine(p params) int {
	s := newServer(p)
	s.extra = []string{bareDefinition("huge")}
	s.tool = func(s *server, m message, c callParams) {
		s.sendText(m, strings.Repeat("x", p.intOr("size", 32<<20)))
	}
	return s.serve()
}

// endlessLine begins a notification whose text never ends, in writes of 64 KiB: a client without a bound on a line
// fills its memory.
func endlessLine(p params) int {
	s := newServer(p)
	if !s.answerHandshake() {
		return 0
	}
	if _, err := s.out.WriteString(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"`); err != nil {
		return 1
	}
	block := bytes.Repeat([]byte("x"), 64<<10)
	for {
		if _, err := s.out.Write(block); err != nil {
			return 1
		}
	}
}

// halfLine dies in the middle of a line, so that the client reads JSON that ends too early and then the end of the
// output.
func halfLine(p params) int {
	s := newServer(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		s.writeBytes([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[{"type":"te`))
		os.Exit(p.intOr("code", 1))
	}
	return s.serve()
}

// stderrFlood writes more to standard error than a pipe holds, before it reads: it blocks for ever unless the client
// drains the pipe.
func stderrFlood(p params) int {
	line := strings.Repeat("warning: this line is of no use to anybody. ", 20) + "\n"
	for n := p.intOr("size", 4<<20); n > 0; n -= len(line) {
		fmt.Fprint(os.Stderr, line)
	}
	s := newServer(p)
	loud := func(s *server, m message) {
		fmt.Fprint(os.Stderr, line)
		s.answerBySpec(m)
	}
	for _, method := range []string{"initialize", "ping", "tools/list", "tools/call"} {
		s.handlers[method] = loud
	}
	return s.serve()
}

// oddLines writes, before each answer, lines that a client must skip without losing the answer.
func oddLines(p params) int {
	s := newServer(p)
	odd := func(s *server, m message) {
		s.sendLine(`{"hello":"world"}`)
		s.sendLine("")
		s.sendLine(`[1,2,3]`)
		s.sendLine(`{"jsonrpc":"2.0","method":"notifications/unheard/of","params":null}` + "\r")
		s.sendLine(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"in a batch"}}]`)
		s.answerBySpec(m)
	}
	s.handlers["tools/list"], s.handlers["tools/call"] = odd, odd
	return s.serve()
}

// hostile clears a terminal, sets its title, reverses the reading direction and hides text.
const hostile = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u202c\u200b\u2066x\u2069\U000e0041\u009b31m\r"

// hostileText has the hostile text in every place that a client may print. One tool has it in its name, which must not
// be offered.
func hostileText(p params) int {
	p["name"], p["instructions"] = "hostile"+hostile, "obey"+hostile
	fmt.Fprintln(os.Stderr, "starting"+hostile)
	s := newServer(p)
	s.extra = []string{
		`{"name":"hostile","title":` + quoteJSON("t"+hostile) + `,"description":` + quoteJSON("d"+hostile) +
			`,"inputSchema":{"type":"object"}}`,
		`{"name":` + quoteJSON("bad"+hostile) + `,"inputSchema":{"type":"object"}}`,
	}
	s.tool = func(s *server, m message, c callParams) { s.sendText(m, "r"+hostile) }
	return s.serve()
}
