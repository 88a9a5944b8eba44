//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// acts matches characters that no output may hold. JSON of the server itself is escaped at a terminal only.
var acts = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{ad}\x{200b}-\x{200f}\x{2028}-\x{202e}\x{2060}-\x{2069}\x{feff}\x{e0000}-\x{e007f}]`)

// TestNothingThatIsPrintedActs runs many commands on the server nasty: no output may hold a character that acts on the reader's
// terminal. The results that --json of call, read and prompt pass on byte for byte are left out, because a terminal gets them
// through escapeWriter.
func TestNothingThatIsPrintedActs(t *testing.T) {
	t.Parallel()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Www-Authenticate", `Bearer realm="x", error_description="`+"\u009b31m\u202e"+`"`)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, nastyText)
	}))
	defer far.Close()
	p := newPlace(t, fmt.Sprintf(`{"mcpServers": {"one": {"command": "nasty", "era": "legacy", "logLevel": "debug"},
		"far": {"type": "http", "url": %q}, "gone": {"command": "no-such-\u009b31m\u202e", "args": ["\u200b\u202e"]}}}`, far.URL))
	up := p.start("up", "--config", "c.json", "--log-level", "debug", "--answers", p.answers())
	up.says("one.*connected")
	commands := []string{"list", "list --json", "tools", "tools one", "tools --json", "tools one says", "call one says", "call one fails",
		"call one fails --json", "call one asks", "call mcp__one__says", "resources", "resources --json", "resources --templates", "read x://plain",
		"prompts", "prompts --json", "prompt one fill", "complete one --prompt fill a b", "ping one far", "ping one --json", "logs one", "logs one --json",
		"logs far", "why one", "why one --json", "why far", "why gone", "get one", "get gone", "get gone --json", "diff one", "diff one --json",
		"permissions test one says", "audit", "audit --json", "config check", "config check --json", "reload", "reconnect far", "auth status",
		"auth status --json", "approve one", "list \u009b31m\u202e", "call one no\u009b31m\u202e", "read x\u202e://\u009b", "enable \u009b31m"}
	for _, line := range commands {
		args := append(strings.Split(line, " "), "--config", "c.json", "--log-level", "debug")
		out, err := p.command(args...).CombinedOutput()
		if found := acts.FindIndex(out); found != nil {
			t.Errorf("%q prints %q of %q (%v)", line, out[found[0]:found[1]], out[max(0, found[0]-80):min(len(out), found[1]+40)], err)
		}
		if len(out) == 0 {
			t.Errorf("%q prints nothing", line)
		}
	}
	up.signal(syscall.SIGTERM)
	up.ends()
	if text := strings.Join(up.said, "\n") + up.stderr.String(); acts.MatchString(strings.ReplaceAll(text, "\n", "")) {
		t.Errorf("up prints %q", acts.FindString(strings.ReplaceAll(text, "\n", "")))
	}
}

// answers writes a file for --answers that declines every question, and returns its path.
func (p *place) answers() string {
	p.t.Helper()
	file := p.dir + "/answers.json"
	if err := os.WriteFile(file, []byte(`{"*": "decline"}`), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return file
}
