package peer_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

var update = flag.Bool("update", false, "write the golden files of testdata as the machine is now: read the difference")

// TestTranscripts plays testdata/*.txt. A line "> …" is an input; what follows it, up to a blank line or the next input, is
// what the machine did, with the time since the start. The first input says what server it is. Lines that begin with # are
// for the reader: each file begins with what happens in it and what it guards against.
//
//	> server http modern tools=3 pages=2 start=20ms latency=2ms seed=1
//	> 1 open | greet | initialize | list | call write c1 | cancel 3 | close | term | kill | abandon 3 | raw {…}
//	> begin crash code=2
//	> end crash
//	> header Authorization Bearer old
//	> wait 5s
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	shown := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			old := strings.ReplaceAll(string(golden), "\r\n", "\n")
			if !strings.HasPrefix(old, "# ") || !strings.Contains(old, "# Guards against") {
				t.Error("the head must say what happens and what the file guards against")
			}
			compare(t, file, old, play(t, old, shown))
		})
	}
	for _, k := range faults.Kinds() {
		if k.Where.Has(faults.Sim|faults.Real) && !shown[k.Name] {
			t.Errorf("no transcript shows an effect of %s", k.Name)
		}
	}
}

// player plays one transcript.
type player struct {
	*driver
	shown         map[string]bool
	startedFaults map[string]scenario.PlannedFault
	seen          int // of done
}

// play performs the inputs of a transcript and returns it with what the machine does now.
func play(t *testing.T, transcript string, shown map[string]bool) string {
	b := new(strings.Builder)
	p := &player{shown: shown, startedFaults: map[string]scenario.PlannedFault{}}
	output := false
	for line := range strings.Lines(transcript) {
		input, isInput := strings.CutPrefix(line, "> ")
		if !isInput {
			output = output && strings.TrimSpace(line) != "" && line[0] != '#'
			if !output {
				b.WriteString(line)
			}
			continue
		}
		output = true
		b.WriteString(line)
		words := strings.Fields(input)
		if words[0] == "server" {
			p.driver = newDriver(t, configOf(t, words[1:]))
			continue
		}
		p.do(t, words, strings.TrimSpace(input))
		for _, e := range p.done[p.seen:] {
			fmt.Fprintf(b, "    %-12s %s\n", e.at, p.show(e.action))
		}
		p.seen = len(p.done)
	}
	return b.String()
}

func configOf(t *testing.T, words []string) peer.Config {
	c := peer.Config{Seed: 1, Canaries: []string{"canary-1"}, Server: scenario.Server{
		Name: "s", Kind: messages.TransportKind(words[0]), Era: messages.Era(words[1]), Tools: 3, Start: 20 * time.Millisecond,
		Latency: 2 * time.Millisecond,
	}}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value) // durations are no numbers
		d, _ := time.ParseDuration(value)
		switch key {
		case "tools":
			c.Server.Tools = n
		case "pages":
			c.Server.Pages = n
		case "seed":
			c.Seed = uint64(n)
		case "start":
			c.Server.Start = d
		case "tasks":
			c.Server.Tasks = value
		case "offers":
			c.Server.Offers = value == "true"
		case "latency":
			c.Server.Latency = d
		default:
			t.Fatalf("the server has no %q", w)
		}
	}
	return c
}

// do performs one input.
func (p *player) do(t *testing.T, words []string, input string) {
	switch words[0] {
	case "begin", "end":
		p.switchFault(t, words)
		return
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		p.advanceTime(d)
		return
	case "header":
		p.header = map[string]string{words[1]: strings.Join(words[2:], " ")}
		return
	}
	conn, err := strconv.Atoi(words[0])
	if err != nil || len(words) < 2 {
		t.Fatalf("what is %q?", input)
	}
	rest := append(words[2:], "", "")
	switch words[1] {
	case "open":
		p.open(conn)
	case "greet": // without a question for the era
		p.open(conn)
		p.hello(conn)
		p.advanceTime(time.Second)
		if p.server.Era == messages.EraModern {
			p.request(conn, p.server.Era, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
		} else {
			p.send(conn, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		p.advanceTime(time.Second)
	case "hello":
		p.hello(conn)
	case "discover":
		p.request(conn, messages.EraModern, "server/discover", "")
	case "list":
		params := ""
		if rest[0] != "" {
			params = `"cursor":` + strings.Replace(strconv.Quote(rest[0]), `"empty"`, `""`, 1)
		}
		p.request(conn, p.server.Era, "tools/list", params)
	case "ping":
		p.request(conn, p.server.Era, "ping", "")
	case "call":
		p.call(conn, rest[0], rest[1])
	case "cancel":
		p.send(conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+rest[0]+`}}`)
	case "raw":
		p.send(conn, strings.TrimSpace(strings.SplitN(input, "raw", 2)[1]))
	case "abandon":
		p.performActions(p.m.Abandoned(p.now, conn, rest[0]))
	case "close", "term":
		p.performActions(p.m.Closed(p.now, conn, words[1] == "term"))
	case "kill":
		p.m.Killed(p.now, conn)
	default:
		t.Fatalf("what is %q?", input)
	}
}

func (p *player) hello(conn int) {
	if p.server.Era == messages.EraModern {
		p.request(conn, p.server.Era, "server/discover", "")
		return
	}
	p.request(conn, p.server.Era, "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`)
}

func (p *player) switchFault(t *testing.T, words []string) {
	name := words[1]
	if words[0] == "end" {
		p.end(p.startedFaults[name])
		return
	}
	f := scenario.PlannedFault{ID: len(p.startedFaults) + 1, Fault: name, With: map[string]string{}}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		f.With[key] = value
	}
	k, ok := faults.Lookup(name)
	if !ok {
		t.Fatalf("no fault %q", name)
	}
	if err := k.CheckParams(faults.Sim, f.With); err != nil || !k.Applies(p.server.Kind, p.server.Era) {
		t.Fatal(err)
	}
	p.startedFaults[name] = f
	p.begin(f)
}

// compare fails at the first line that differs from the golden file, or writes the file if the flag says so.
func compare(t *testing.T, file, want, got string) {
	t.Helper()
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; ; i++ {
		if i == len(g) || i == len(w) || g[i] != w[i] {
			at := func(lines []string) string {
				return strings.Join(lines[min(i, len(lines)):min(i+4, len(lines))], "\n\t")
			}
			t.Fatalf("%s:%d differs (-update writes what is now)\nnow\n\t%s\nfile\n\t%s", file, i+1, at(g), at(w))
		}
	}
}
