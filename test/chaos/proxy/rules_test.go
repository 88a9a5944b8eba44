package proxy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

const rulesFile = `# what breaks today
seed: 7
faults:
  - fault: latency
    with: {by: 2s, jitter: 0.5}
    on: tools/call
    tool: echo
    chance: 0.3
    at: 10s
    for: 30s
    every: 1m
    times: 5
  - fault: tool-error
    name: broken
    with:
      rpc: true
      code: 32000
`

func TestRulesFile(t *testing.T) {
	f, err := proxy.ParseFile("rules.yaml", []byte(rulesFile), fault.Stdio)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range f.Faults {
		got = append(got, r.String())
	}
	want := []string{"latency by=2s jitter=0.5 on=tools/call tool=echo chance=0.3 times=5 at=10s for=30s every=1m0s",
		"tool-error code=32000 rpc=true name=broken"}
	if f.Seed != 7 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("seed %d\n%s", f.Seed, strings.Join(got, "\n"))
	}
}

// TestRulesFileErrors: which file, which line, what to do.
func TestRulesFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"faults:\n  - fault: latancy\n":                        `r.yaml: [2:12]: there is no fault "latancy"; did you mean "latency"?`,
		"faults:\n  - fault: latency\n  - fault: cut-stream\n": "[3:12]: cut-stream cannot be done over stdio",
		"faults:\n  - fault: latency\n    with: {bye: 1s}\n":   `latency has no parameter "bye"; did you mean "by"?`,
		"faults:\n  - fault: latency\n    when: now\n":         "[3:5]",
		"faults:\n  - fault: latency\n    for: ever\n":         `"ever" is no duration`,
		"faults: [\n": "r.yaml: [",
		"faults:\n  - fault: latency\n    chance: 1.5\n": "chance=1.5 is no probability",
		"sead: 7\n": "[1:1]",
		"faults:\n  - fault: latency\n    direction: up\n":          "write server or client",
		"faults:\n  - fault: latency\n    for: 2m\n    every: 1m\n": "let for be shorter than every",
	} {
		if _, err := proxy.ParseFile("r.yaml", []byte(text), fault.Stdio); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\n\t got %v\n\twant %s", text, err, want)
		}
	}
}

// TestWatch: a file that is changed counts; one that is broken changes nothing and is told.
func TestWatch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write("faults: []\n")
	control, err := fault.New(1)
	if err != nil {
		t.Fatal(err)
	}
	control = control.At(fault.Stdio)
	ctx, stop := context.WithCancel(context.Background())
	problems, over := make(chan error, 10), make(chan struct{})
	go func() {
		defer close(over)
		proxy.Watch(ctx, name, time.Millisecond, control, fault.Stdio, func(err error) { problems <- err })
	}()
	defer func() { stop(); <-over }()
	for deadline := time.Now().Add(bound); control.Passive(); time.Sleep(10 * time.Millisecond) {
		write("faults:\n  - fault: hang-call\n") // again, because what is written before it first looks is no change to it
		if time.Now().After(deadline) {
			t.Fatal("the rule is not in force")
		}
	}
	write("faults:\n  - fault: hang-cull\n")
	select {
	case err := <-problems:
		if !strings.Contains(err.Error(), `did you mean "hang-call"?`) {
			t.Error(err)
		}
	case <-time.After(bound):
		t.Fatal("nobody is told of a broken file")
	}
	if l := control.List(); len(l) != 1 || l[0].Rule.Fault != "hang-call" {
		t.Errorf("a broken file has changed the rules: %+v", l)
	}
}

func TestEndpoint(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // a path of a test is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, address := range []string{"127.0.0.1:0", filepath.Join(dir, "s")} {
		control, err := fault.New(1)
		if err != nil {
			t.Fatal(err)
		}
		e, err := proxy.OpenEndpoint(address, control.At(fault.Stdio))
		if err != nil {
			t.Fatal(err)
		}
		c, ctx := proxy.NewClient(e.Address()), t.Context()
		if rules, err := c.List(ctx); err != nil || len(rules) != 0 {
			t.Errorf("List: %v, %v", rules, err)
		}
		name, err := c.Add(ctx, "latency by=1s tool='a b'")
		if err != nil || name != "r1" {
			t.Errorf("Add: %q, %v", name, err)
		}
		asJSON, _ := json.Marshal(fault.Rule{Fault: "hang-call", Name: "two"})
		if name, err = c.Add(ctx, string(asJSON)); err != nil || name != "two" {
			t.Errorf("Add of JSON: %q, %v", name, err)
		}
		for line, want := range map[string]string{
			"latancy": `did you mean "latency"?`, "cut-stream": "over stdio", `{"fault":"latency","x":1}`: "unknown field", "": "there is no fault",
		} {
			if _, err := c.Add(ctx, line); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Add of %q: %v", line, err)
			}
		}
		if rules, err := c.List(ctx); err != nil || len(rules) != 2 || rules[0].Rule.String() != `latency by=1s tool="a b" name=r1` {
			t.Errorf("List: %+v, %v", rules, err)
		}
		if err := c.Remove(ctx, "nobody"); err == nil || !strings.Contains(err.Error(), "known are r1, two") {
			t.Errorf("Remove: %v", err)
		}
		if err := c.Remove(ctx, "r1"); err != nil {
			t.Error(err)
		}
		if err := c.Clear(ctx); err != nil || !control.Passive() {
			t.Errorf("Clear: %v", err)
		}
		e.Close()
		if _, err := c.List(ctx); err == nil || !strings.Contains(err.Error(), "no proxy answers") {
			t.Errorf("List behind the end: %v", err)
		}
	}
	control, _ := fault.New(1)
	if _, err := proxy.NewHTTP("http://127.0.0.1:1/mcp", "0.0.0.0:0", proxy.Shared{Control: control}); err == nil || !strings.Contains(err.Error(), "other machines") {
		t.Errorf("a proxy that other machines can reach: %v", err)
	}
	for address, want := range map[string]string{"0.0.0.0:0": "other machines", ":7": "other machines", "example.com:80": "other machines", "x": "no address"} {
		if _, err := proxy.OpenEndpoint(address, control); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestTheSummary names what was done by rule, and what never happened.
func TestTheSummary(t *testing.T) {
	tally := &proxy.Tally{}
	for range 3 {
		tally.Hit(fault.Hit{Rule: "r1", Fault: "latency"})
	}
	var out strings.Builder
	tally.Summary(&out, []fault.Status{{Rule: fault.Rule{Name: "r1", Fault: "latency"}}, {Rule: fault.Rule{Name: "r2", Fault: "crash"}, Matched: 4}})
	want := "chaos proxy: 0 messages to the server, 0 to the agent, 3 faults done\n  r1 latency                   3 times\n" +
		"  never happened: r2 crash (messages looked at: 4)\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}

// Who does not know the password, or was led here by another name, changes no rules.
func TestTheEndpointHasAPassword(t *testing.T) {
	control, err := fault.New(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{"", "secret@"} {
		e, err := proxy.OpenEndpoint(given+"127.0.0.1:0", control.At(fault.Stdio))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		password, host, _ := strings.Cut(e.Address(), "@")
		if given != "" && password != "secret" || len(password) < 6 {
			t.Errorf("the password is %q", password)
		}
		for address, want := range map[string]string{e.Address(): "", host: "password", "wrong@" + host: "password"} {
			if _, err := proxy.NewClient(address).List(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", address, err)
			}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/rules", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "rebound.example:1"
		req.Header.Set("Authorization", "Bearer "+password)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("another host: %s", resp.Status)
		}
	}
}
