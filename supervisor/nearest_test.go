package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// nearestOf returns the name that an error offers, and fails the test if its text and the field do not agree.
func nearestOf(t *testing.T, err error) string {
	t.Helper()
	var e *supervisor.Error
	if !errors.As(err, &e) {
		t.Fatalf("no *Error: %v", err)
	}
	if e.Nearest == "" {
		if strings.Contains(e.Error(), "did you mean") {
			t.Errorf("a text without its field: %v", e)
		}
	} else if !strings.Contains(e.Error(), fmt.Sprintf("; did you mean %q?", messages.Line(e.Nearest, 200))) {
		t.Errorf("the field is %q, and the text %q", e.Nearest, e.Error())
	}
	return e.Nearest
}

// A misspelt name gets the nearest one that exists, in the form in which it was given.
func TestNearest_tools(t *testing.T) {
	files := supervisortest.NewServer("files", supervisortest.Text("read_file", ""), supervisortest.Text("write_file", ""))
	github := supervisortest.NewServer("github", supervisortest.Text("create_issue", ""), supervisortest.Text("read_file_of_repository", ""))
	m := supervisortest.Start(t, files, github)
	ctx := t.Context()
	for name, want := range map[string]string{
		"mcp__files__raed_file":     "mcp__files__read_file",
		"mcp__files__ReadFile":      "mcp__files__read_file",
		"mcp__file__read_file":      "mcp__files__read_file",
		"mcp__gihtub__create_issue": "mcp__github__create_issue",
		"create_issue":              "mcp__github__create_issue",
		"mcp__files__create_issue":  "", // the server's name is right, and it has nothing of the kind
		"mcp__postgres__query":      "",
		strings.Repeat("x", 1<<20):  "",
	} {
		_, err := m.CallTool(ctx, name, nil)
		if got := nearestOf(t, err); got != want || !errors.Is(err, supervisor.ErrUnknownTool) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("%s: %q, not %q: %v", messages.Line(name, 80), got, want, err)
		}
	}
	_, err := m.CallServerTool(ctx, "files", "write-fil", nil)
	if got := nearestOf(t, err); got != "write_file" {
		t.Errorf("a server's own name: %q: %v", got, err)
	}
	_, err = m.CallServerTool(ctx, "gihtub", "create_issue", nil)
	if got := nearestOf(t, err); got != "github" || !errors.Is(err, supervisor.ErrUnknownServer) {
		t.Errorf("a server's name: %q: %v", got, err)
	}
	if _, err = m.ServerStatus("flies"); nearestOf(t, err) != "files" {
		t.Errorf("of a read without a call: %v", err)
	}
	if err = m.Reconnect(ctx, "flies"); nearestOf(t, err) != "files" {
		t.Errorf("of a command: %v", err)
	}
}

// An empty name was once answered with "no such server is configured".
func TestAnEmptyNameOfAToolIsNamed(t *testing.T) {
	m := supervisortest.Start(t, supervisortest.NewServer("files", supervisortest.Text("read", "")))
	for _, server := range []string{"", "files", "absent"} {
		_, err := m.CallServerTool(t.Context(), server, "", nil)
		var e *supervisor.Error
		if !errors.As(err, &e) || !errors.Is(err, supervisor.ErrUnknownTool) || !errors.Is(err, supervisor.ErrNotSent) || e.Server != server ||
			!strings.Contains(e.Error(), "the name of the tool is empty") {
			t.Errorf("%q: %v", server, err)
		}
	}
}

// An error never offers a tool that the caller may not call: neither one that a rule or the spec denies, nor one that the program refuses
// this caller.
func TestNearest_onlyWhatTheCallerMayCall(t *testing.T) {
	files := supervisortest.NewServer("files", supervisortest.Text("delete_file", ""), supervisortest.Text("delete_files", ""),
		supervisortest.Text("erase_disk", ""), supervisortest.Text("hidden_tool", ""))
	files.Spec.DeniedTools = []string{"hidden_tool"}
	secret := supervisortest.NewServer("secret", supervisortest.Text("open", ""))
	m := supervisortest.StartConfig(t, supervisor.Config{
		Access: access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Deny, "mcp__files__erase_disk")}}},
		Allow: func(ctx context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
			if caller := supervisor.CallerOf(ctx); caller == "guest" && (tool.Name == "delete_file" || tool.Server == "secret") {
				return errors.New("not for guests")
			}
			return nil
		},
	}, files, secret)
	for _, c := range []struct{ caller, name, want string }{
		{"owner", "mcp__files__delete_fil", "mcp__files__delete_file"},
		{"guest", "mcp__files__delete_fil", "mcp__files__delete_files"}, // the next one
		{"owner", "mcp__files__erase_dsik", ""},
		{"owner", "mcp__files__hidden_tol", ""},
		{"owner", "mcp__sercet__open", "mcp__secret__open"},
		{"guest", "mcp__sercet__open", ""},
		{"guest", "open", ""},
	} {
		_, err := m.CallTool(supervisor.WithCaller(t.Context(), c.caller), c.name, nil)
		if got := nearestOf(t, err); got != c.want {
			t.Errorf("%s of %s: %q, not %q: %v", c.name, c.caller, got, c.want, err)
		}
	}
	for caller, want := range map[string]string{"owner": "secret", "guest": ""} {
		_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), caller), "sercet", "open", nil)
		if got := nearestOf(t, err); got != want {
			t.Errorf("a server, for %s: %q: %v", caller, got, err)
		}
	}
}

// A Config.Allow that does not return makes the error late by a second, and no more.
func TestNearest_blockedAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		m := supervisortest.StartConfig(t, supervisor.Config{
			Allow: func(context.Context, *supervisor.Tool, json.RawMessage) error { <-free; return nil },
		}, supervisortest.NewServer("files", supervisortest.Text("read", "")))
		began := time.Now()
		_, err := m.CallTool(t.Context(), "mcp__files__raed", nil)
		if got := nearestOf(t, err); got != "" || !errors.Is(err, supervisor.ErrUnknownTool) || time.Since(began) > time.Second {
			t.Errorf("%q after %v: %v", got, time.Since(began), err)
		}
	})
}

// The tools of one caller's instance are offered to no other.
func TestNearest_instances(t *testing.T) {
	own := supervisortest.NewServer("mail", supervisortest.Text("send_mail", ""))
	own.Spec.Share = messages.SharePrincipal
	m := supervisortest.Start(t, own)
	anna, bert := supervisor.WithCaller(t.Context(), "anna"), supervisor.WithCaller(t.Context(), "bert")
	if _, err := m.CallTool(anna, "mcp__mail__send_mail", nil); err != nil {
		t.Fatal(err)
	}
	own.SetTools(supervisortest.Text("send_mail", ""), supervisortest.Text("archive_mail", ""))
	eventually(t, "her second tool is offered", func() bool {
		return slices.ContainsFunc(m.ToolsFor(anna), func(e *supervisor.Entry) bool { return e.Tool.Name == "archive_mail" })
	})
	_, err := m.CallServerTool(anna, "mail", "sned_mail", nil)
	if got := nearestOf(t, err); got != "send_mail" {
		t.Errorf("of her own instance: %q: %v", got, err)
	}
	// His error may come from an instance that is only made now.
	if _, err = m.CallServerTool(bert, "mail@anna", "sned_mail", nil); nearestOf(t, err) != "" {
		t.Errorf("of another's instance: %v", err)
	}
}

// Prompts and resources have names as well; a server that does not know one is asked for its list.
func TestNearest_promptsAndResources(t *testing.T) {
	m, _ := libraries(t, messages.EraLegacy, supervisor.Config{})
	ctx := t.Context()
	_, err := m.GetServerPrompt(ctx, "a", "great", map[string]string{"what": "x"})
	if got := nearestOf(t, err); got != "greet" || !errors.Is(err, supervisor.ErrUnknownPrompt) {
		t.Errorf("a prompt: %q: %v", got, err)
	}
	_, err = m.GetPrompt(ctx, "mcp__a__great", nil)
	if got := nearestOf(t, err); got != "mcp__a__greet" {
		t.Errorf("a qualified prompt: %q: %v", got, err)
	}
	_, err = m.ReadServerResource(ctx, "a", "book:///aa")
	if got := nearestOf(t, err); got != "book:///a" || !errors.Is(err, supervisor.ErrUnknownResource) {
		t.Errorf("a resource: %q: %v", got, err)
	}
	_, err = m.ReadResource(ctx, "book:///everybdoy")
	if got := nearestOf(t, err); got != "book:///everybody" {
		t.Errorf("a resource of any server: %q: %v", got, err)
	}
}

// The search for the name that was meant wakes no server that rests: a misspelt prompt of it is answered from what is known. Once the server was
// connected anew, for its list alone.
func TestNearest_wakesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: supervisor.Duration(time.Minute)}}}, map[string]*fake{"a": f})
		settled(t, m)
		time.Sleep(3 * time.Minute)
		before := f.dials.Load()
		for _, method := range []string{"prompts/get", "resources/read"} {
			if err := supervisor.NearestOf(t.Context(), m, method, "a", "grete"); nearestOf(t, err) != "" {
				t.Errorf("%s: %v", method, err)
			}
		}
		if n := f.dials.Load() - before; n != 0 || f.alive.Load() != 0 {
			t.Errorf("%d dials", n)
		}
	})
}
