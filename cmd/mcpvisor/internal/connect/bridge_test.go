package connect

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

var update = flag.Bool("update", false, "write what the bridge answers into testdata")

// TestBridgeTranscripts plays the stories of testdata. In "said" each line is a step: "agent", "daemon" and "former" bring a message;
// With connect the bridge gets a daemon, with disconnect it loses it, and with refuse it answers what waits for one by an error. With drain
// the daemon announces its end, and with leave the bridge leaves such a daemon,
// with leave-stopped one that a person has ended. With move it gets a connection for another directory, and with
// former-lost the one before ends. With project the directory was given by hand, and after pause the bridge may ask for the roots again. In
// "heard" stand the same steps with the lines that the bridge writes after each, "> agent", "> daemon" and "> former", and the directories that
// it has learnt.
func TestBridgeTranscripts(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.txtar")
	if len(names) == 0 {
		t.Fatal("no testdata")
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var heard bytes.Buffer
			b := &bridge{roots: rootsQuestion{follow: true}}
			for step := range strings.Lines(string(a.Files[0].Data)) {
				step = strings.TrimSpace(step)
				heard.WriteString(step + "\n")
				out := playStep(b, step)
				for _, line := range out.toDaemon {
					heard.WriteString("> daemon " + string(line) + "\n")
				}
				for _, line := range out.toFormer {
					heard.WriteString("> former " + string(line) + "\n")
				}
				if out.rootsKnown {
					fmt.Fprintf(&heard, "> directories %q\n", out.directories)
				}
				for _, line := range out.toAgent {
					heard.WriteString("> agent " + string(line) + "\n")
				}
			}
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "heard", Data: heard.Bytes()})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(a.Files) != 2 || string(a.Files[1].Data) != heard.String() {
				t.Errorf("heard:\n%s", heard.String())
			}
		})
	}
}

// playStep takes one step of a story.
func playStep(b *bridge, step string) lines {
	word, rest, _ := strings.Cut(step, " ")
	switch word {
	case "agent":
		return b.fromAgent([]byte(rest))
	case "daemon":
		return b.fromDaemon([]byte(rest))
	case "connect":
		return b.beginDaemon()
	case "disconnect":
		return b.loseDaemon()
	case "drain":
		return b.stopSending([]byte(`{"mcpvisor":"drained"}`))
	case "leave":
		return b.leaveDaemon([]byte(`{"mcpvisor":"drained"}`), true)
	case "leave-stopped":
		return b.leaveDaemon([]byte(`{"mcpvisor":"drained"}`), false)
	case "refuse":
		return b.refuseWaiting(rest)
	case "move":
		return b.moveDaemon()
	case "former":
		return b.fromFormer([]byte(rest))
	case "former-lost":
		return b.loseFormer()
	case "pause":
		return b.endRootsPause()
	case "project":
		b.roots.follow = false
		return lines{}
	}
	panic("no such step: " + step)
}

// FuzzBridge plays any lines of both sides with any ends of the daemon, and checks that no call is sent to a daemon twice, and that
// what the bridge makes by itself is JSON.
func FuzzBridge(f *testing.F) {
	f.Add([]byte("c\na{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}\nx\nc\n"))
	f.Add([]byte("a{\"id\":1,\"method\":\"initialize\"}\nc\nd{\"id\":1,\"result\":{}}\nx\na{\"id\":2,\"method\":\"tools/call\"}\nc\nd{\"id\":\"mcpvisor-connect-2-1\"}\n"))
	f.Add([]byte("c\nd{\"id\":7,\"method\":\"roots/list\"}\na{\"id\":\"1:7\",\"result\":{}}\n"))
	f.Add([]byte("c\na{\"id\":1,\"method\":\"initialize\",\"params\":{\"capabilities\":{\"roots\":{}}}}\nd{\"id\":1,\"result\":{}}\na{\"method\":\"notifications/initialized\"}\n" +
		"a{\"id\":\"mcpvisor-connect-roots-1\",\"result\":{\"roots\":[{\"uri\":\"file:///a\"}]}}\na{\"id\":2,\"method\":\"tools/call\"}\nm\nf{\"id\":2,\"result\":{}}\nl\np\n"))
	f.Add([]byte("c\na{\"id\":2,\"method\":\"tools/call\"}\ng\na{\"id\":3,\"method\":\"tools/call\"}\nc\nf{\"id\":2,\"result\":{}}\nl\nd{\"id\":3,\"result\":{}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b := &bridge{roots: rootsQuestion{follow: true}}
		calls, sent := map[string]int{}, map[string]int{}
		for line := range bytes.Lines(text) {
			line = bytes.TrimSpace(line)
			if len(line) == 0 {
				continue
			}
			var out lines
			switch kind, rest := line[0], line[1:]; kind {
			case 'a':
				if e := readEnvelope(rest); e.isRequest() && e.methodName() == "tools/call" {
					calls[string(rest)]++
				}
				out = b.fromAgent(rest)
			case 'd':
				out = b.fromDaemon(rest)
			case 'c':
				if b.phase == disconnected {
					out = b.beginDaemon()
				}
			case 'x':
				out = b.loseDaemon()
			case 'r':
				out = b.refuseWaiting("no")
			case 'e':
				out = b.stopSending([]byte("{}"))
			case 'g':
				if b.mayLeave() {
					out = b.leaveDaemon([]byte("{}"), true)
				}
			case 'm':
				if b.former == nil && b.phase != disconnected {
					out = b.moveDaemon()
				}
			case 'f':
				if b.former != nil {
					out = b.fromFormer(rest)
				}
			case 'l':
				out = b.loseFormer()
			case 'p':
				out = b.endRootsPause()
			}
			for _, r := range b.open {
				if r.epoch != 0 && (r.epoch != b.epoch || b.phase == disconnected) && (b.former == nil || r.epoch != b.former.epoch) {
					t.Fatalf("nobody will answer %s", r.line)
				}
			}
			for _, l := range out.toDaemon {
				if _, call := calls[string(l)]; call {
					if sent[string(l)]++; sent[string(l)] > calls[string(l)] {
						t.Fatalf("sent more often than asked: %s", l)
					}
				}
			}
			for _, l := range out.toAgent {
				if bytes.Contains(l, []byte("mcpvisor/outcome")) && rawjson.Valid(line[1:]) && !rawjson.Valid(l) {
					t.Fatalf("no JSON: %s", l)
				}
			}
		}
	})
}

// TestWhatIsAnsweredWithoutItsIDIsNotAwaited has an agent send what the daemon refuses without reading an id: nothing of it stays behind.
func TestWhatIsAnsweredWithoutItsIDIsNotAwaited(t *testing.T) {
	for name, line := range map[string]string{
		"two messages":   `{"jsonrpc":"2.0","id":1,"method":"tools/list"}{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		"no UTF-8":       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"x\":\"\xe9\"}}",
		"half of one":    `{"jsonrpc":"2.0","id":1,"method":"tools/list"`,
		"a batch":        `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`,
		"too long an id": `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", maxID) + `","method":"tools/list"}`,
	} {
		b := &bridge{}
		b.beginDaemon()
		if out := b.fromAgent([]byte(line)); len(out.toDaemon) != 1 || len(b.open) > 0 {
			t.Errorf("%s: %d lines for the daemon, which says what is wrong, and %d requests are open", name, len(out.toDaemon), len(b.open))
		}
	}
}

// TestARefusedSecondHandshake passes the error to an agent that sends initialize twice as it is: the bridge once completed the capabilities of a result
// that an error has not, and wrote broken JSON.
func TestARefusedSecondHandshake(t *testing.T) {
	b := &bridge{answered: true, handshake: []byte(`{"method":"initialize","params":{"capabilities":{"roots":{}}}}`)}
	b.roots.follow = true
	for line, changes := range map[string]bool{
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"twice"}}`:                                   false,
		`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"completions":{}}}}`: true,
	} {
		got := string(b.withAllCapabilities([]byte(line)))
		if !json.Valid([]byte(got)) || (got != line) != changes {
			t.Errorf("%s became %s", line, got)
		}
	}
}
