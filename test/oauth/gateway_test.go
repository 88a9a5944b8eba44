//go:build unix

package oauth_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSignInThroughTheBridge is the way of somebody whose agent has mcpvisor connect: the call of a server that needs a sign-in ends with
// an address, the browser is sent there, the agent is told, the tools appear, and the next call has its result.
func TestSignInThroughTheBridge(t *testing.T) {
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	file := filepath.Join(p.home, "config", "mcpvisor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {"protected": {"type": "http", "url": %q}}}`, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(p.program, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = p.project, p.env, t.Output()
		return cmd
	}
	bridge := command("connect", "--project", p.project)
	in, err := bridge.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := bridge.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bridge.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 100)
	go func() { // it ends with the bridge
		defer close(said)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			said <- line
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		if err := bridge.Wait(); err != nil {
			t.Errorf("the bridge: %v", err)
		}
		if err := command("down").Run(); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	late := time.After(bound)
	// await returns the first line with all of these parts; the others are passed over.
	await := func(parts ...string) string {
		t.Helper()
		for {
			select {
			case line, ok := <-said:
				all := ok
				for _, part := range parts {
					all = all && strings.Contains(line, part)
				}
				if all {
					return line
				}
				if !ok {
					t.Fatalf("the bridge ended before %q", parts)
				}
			case <-late:
				t.Fatalf("%q did not come", parts)
			}
		}
	}
	say := func(line string) {
		t.Helper()
		if _, err := in.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	const call = `,"method":"tools/call","params":{"name":"protected__echo","arguments":{}}}`
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}},"clientInfo":{"name":"agent","version":"1"}}}`)
	await(`"id":0`, `"result"`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if list := await(`"id":1`); strings.Contains(list, "protected__echo") {
		t.Errorf("before the sign-in: %s", list)
	}
	say(`{"jsonrpc":"2.0","id":2` + call)
	var refused struct {
		Error struct {
			Code int
			Data struct {
				Elicitations []struct{ Mode, URL, ElicitationID string }
			}
		}
	}
	answer := await(`"id":2`)
	if err := json.Unmarshal([]byte(answer), &refused); err != nil || refused.Error.Code != -32042 || len(refused.Error.Data.Elicitations) != 1 {
		t.Fatalf("the call without a sign-in: %s", answer)
	}
	link := refused.Error.Data.Elicitations[0]
	if !strings.HasPrefix(link.URL, as.Issuer) || link.Mode != "url" {
		t.Fatalf("the link: %+v, and the authorization server is %s", link, as.Issuer)
	}
	if err := followSignIn(t.Context(), link.URL); err != nil {
		t.Fatal(err)
	}
	await("notifications/elicitation/complete", link.ElicitationID)
	say(`{"jsonrpc":"2.0","id":3` + call)
	if answer := await(`"id":3`); !strings.Contains(answer, `"text":"echo"`) {
		t.Errorf("the call after the sign-in: %s", answer)
	}
	say(`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`)
	if list := await(`"id":4`); !strings.Contains(list, "protected__echo") {
		t.Errorf("after the sign-in: %s", list)
	}
	if counts := as.Counts(t); counts.SignedIn != 1 {
		t.Errorf("%d people have signed in", counts.SignedIn)
	}
}
