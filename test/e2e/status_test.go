package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// One server in each of the five states, and what the status says of it, in the JSON that other programs read.
func TestEachOfTheFiveStates(t *testing.T) {
	seeds.Shows(t, "000.3.status-json", "000.3.status-error", "000.3.status-config", "000.3.status-connected",
		"000.3.status-failed", "000.3.status-needs-auth", "000.3.status-pending", "000.3.status-disabled",
		"000.6.connection-state", "000.6.initialize", "000.11.status-values", "002.3.server", "002.3.server-status",
		"004.fr1.server-info", "004.fr6.ac-status")
	checkLeaks(t)
	const secret = "canary-of-states-40b7"
	locked := web.Serve(t, web.RequireToken("another one", web.Good()))
	specs := map[string]supervisor.Spec{
		"connected": changeSpec(fixtureSpec("good"), func(s *supervisor.Spec) {
			s.Env, s.Scope = map[string]string{"TOKEN": secret}, messages.ScopeUser
		}),
		"failed": {Command: "/no/such/program", Args: []string{"--token", secret}},
		"needs-auth": {Type: messages.HTTP, URL: locked + "/mcp?key=" + secret,
			Headers: map[string]string{"Authorization": "Bearer " + secret}},
		"pending":  changeSpec(fixtureSpec("silent"), func(s *supervisor.Spec) { s.StopGrace, s.ConnectTimeout = toDuration(0.5), toDuration(600) }),
		"disabled": changeSpec(fixtureSpec("good"), func(s *supervisor.Spec) { s.Disabled = true }),
	}
	m := startManager(t, supervisor.Config{Servers: specs})
	for name := range specs { // each is named by the state that it comes to
		eventually(t, name+" is "+name, func() bool { return string(statusOf(t, m, name).Status) == name })
	}
	eventually(t, "the silent one is asked", func() bool { return statusOf(t, m, "pending").Step == messages.Handshaking })
	var all []map[string]json.RawMessage
	text := asJSON(t, m.Status())
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != len(specs) {
		t.Fatalf("%d servers, %v", len(all), err)
	}
	if strings.Contains(text, secret) {
		t.Errorf("a secret is shown: %s", text)
	}
	byName := map[string]map[string]json.RawMessage{}
	for _, st := range all {
		var name string
		if err := json.Unmarshal(st["name"], &name); err != nil {
			t.Fatal(err)
		}
		byName[name] = st
		if string(st["status"]) != `"`+name+`"` {
			t.Errorf("%s: status %s", name, st["status"])
		}
		var config supervisor.Spec
		if err := json.Unmarshal(st["config"], &config); err != nil || config.Command != specs[name].Command ||
			config.Disabled != specs[name].Disabled || config.Kind() != specs[name].Kind() {
			t.Errorf("%s: config %s, %v", name, st["config"], err)
		}
		if string(st["transport"]) != `"`+string(specs[name].Kind())+`"` {
			t.Errorf("%s: transport %s", name, st["transport"])
		}
		if (st["error"] != nil) != (name == "failed" || name == "needs-auth") {
			t.Errorf("%s: error %s", name, st["error"])
		}
		if (st["tools"] != nil) != (name == "connected") || (st["serverInfo"] != nil) != (name == "connected") {
			t.Errorf("%s: tools %s, info %s", name, st["tools"], st["serverInfo"])
		}
	}
	if got := string(byName["connected"]["serverInfo"]); got != `{"name":"fixture","version":"1.0.0"}` {
		t.Errorf("serverInfo %s", got)
	}
	if got := string(byName["connected"]["scope"]); got != `"user"` {
		t.Errorf("scope %s", got)
	}
	var env struct{ Env map[string]string }
	if err := json.Unmarshal(byName["connected"]["config"], &env); err != nil || env.Env["TOKEN"] != "[redacted]" {
		t.Errorf("config %s, %v", byName["connected"]["config"], err)
	}
	if !containsWords(string(byName["failed"]["error"]), "/no/such/program") ||
		!containsWords(string(byName["pending"]["step"]), "handshaking") {
		t.Errorf("failed: %s; pending: %s", byName["failed"]["error"], byName["pending"]["step"])
	}
}
