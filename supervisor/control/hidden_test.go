package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// An offeringServer has a tool, a resource, a template and a prompt, under names of its own, and says in each answer who it is.
type offeringServer struct{ says, own, more string }

func (s offeringServer) serve(ctx context.Context, peer inprocess.Peer) error {
	for {
		body, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		id := rawjson.Member(body, "id")
		method, _ := rawjson.Text(rawjson.Member(body, "method"))
		if id == nil {
			continue
		}
		result := strings.NewReplacer("OWN", s.own, "MORE", s.more, "SAYS", s.says).Replace(map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{}},` +
				`"serverInfo":{"name":"n","version":"1"}}`,
			"tools/list":               `{"tools":[{"name":"OWN","inputSchema":{"type":"object"}}]}`,
			"tools/call":               `{"content":[{"type":"text","text":"SAYS"}]}`,
			"resources/list":           `{"resources":[{"uri":"x://OWN","name":"n"},{"uri":"x://MORE","name":"b"}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"t://OWN/{x}","name":"t"}]}`,
			"resources/read":           `{"contents":[{"uri":"x://OWN","text":"SAYS"}]}`,
			"prompts/list":             `{"prompts":[{"name":"OWN"}]}`,
			"prompts/get":              `{"messages":[{"role":"user","content":{"type":"text","text":"SAYS"}}]}`,
			"completion/complete":      `{"completion":{"values":["SAYS"]}}`,
		}[method])
		if result == "" {
			result = "{}"
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)); err != nil {
			return err
		}
	}
}

func startOffering(t *testing.T, share messages.Share, servers map[string]offeringServer) *supervisor.Manager {
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{}, InProcess: map[string]func(context.Context, inprocess.Peer) error{}}
	for name, s := range servers {
		cfg.Servers[name], cfg.InProcess[name] = supervisor.Spec{Type: messages.SDK, Share: share}, s.serve
	}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// A project's server hides the user's one of the same name: no request reaches the hidden one, by whatever name it is asked for.
func TestAHiddenServerIsNotReached(t *testing.T) {
	const hidden = "the hidden one"
	project := startOffering(t, "", map[string]offeringServer{"notes": {"the project's", "project", "a"}, "notes__more": {"the project's", "more", "b"}})
	user := startOffering(t, messages.SharePrincipal, map[string]offeringServer{"notes": {hidden, "user", "both"}, "notes__more": {hidden, "hashed", "c"},
		"files": {"the user's", "files", "both"}, "notes__mor": {"the user's", "mor", "d"}})
	// Somebody has used the hidden server under another project, so that it has an instance.
	ann := supervisor.WithCaller(t.Context(), "ann")
	if _, err := user.CallServerTool(ann, "notes", "user", nil); err != nil {
		t.Fatal(err)
	}
	b := control.Local(project, control.LocalConfig{Shared: []*supervisor.Manager{user}})
	read := func(server, uri string) (string, error) {
		res, err := b.Read(t.Context(), control.Read{Server: server, URI: uri})
		return string(res.Raw), err
	}
	call := func(ctx context.Context, c control.Call) (string, error) {
		res, err := b.Call(ctx, c)
		return string(res.Raw), err
	}
	fill := func(f control.Fill) (string, error) {
		res, err := b.Fill(t.Context(), f)
		return string(res.Raw), err
	}
	complete := func(server string) (string, error) {
		res, err := b.Complete(t.Context(), server, messages.CompleteRequest{Prompt: "user", Argument: "a"})
		return fmt.Sprint(res.Values), err
	}
	names := messages.Naming{}
	for what, ask := range map[string]func() (string, error){
		"a resource":              func() (string, error) { return read("", "x://user") },
		"a template":              func() (string, error) { return read("", "t://user/1") },
		"a resource of a server":  func() (string, error) { return read("notes", "x://user") },
		"a resource of instances": func() (string, error) { return read("notes@ann", "x://user") },
		"a tool":                  func() (string, error) { return call(t.Context(), control.Call{Qualified: names.Tool("notes", "user")}) },
		"a tool of a server":      func() (string, error) { return call(t.Context(), control.Call{Server: "notes", Tool: "user"}) },
		"a tool by a hash": func() (string, error) {
			return call(t.Context(), control.Call{Qualified: names.Tool("notes__more", "hashed")})
		},
		"a tool of an instance": func() (string, error) { return call(ann, control.Call{Server: "notes@ann", Tool: "user"}) },
		"a prompt":              func() (string, error) { return fill(control.Fill{Qualified: names.Prompt("notes", "user")}) },
		"a prompt by a hash":    func() (string, error) { return fill(control.Fill{Qualified: names.Prompt("notes__more", "hashed")}) },
		"a prompt of a server":  func() (string, error) { return fill(control.Fill{Server: "notes", Name: "user"}) },
		"a completion":          func() (string, error) { return complete("notes") },
		"an instance's":         func() (string, error) { return complete("notes@ann") },
		"a status": func() (string, error) {
			st, err := b.Status(t.Context(), control.StatusQuery{Servers: []string{"notes@ann"}})
			if err == nil && len(st) > 0 {
				return hidden, nil
			}
			return "", err
		},
		"a watch": func() (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := b.Watch(ctx, "notes@ann", "x://user", func() error { return errors.New(hidden) })
			return fmt.Sprint(err), err
		},
	} {
		if answer, err := ask(); strings.Contains(answer, hidden) {
			t.Errorf("%s: %s, %v", what, answer, err)
		}
	}
	for _, uri := range []string{"x://files", "x://both"} { // the second one is of a hidden server, too
		if answer, err := read("", uri); err != nil || !strings.Contains(answer, "the user's") {
			t.Errorf("what is not hidden, %s: %s, %v", uri, answer, err)
		}
	}
	if answer, err := call(t.Context(), control.Call{Qualified: names.Tool("notes__mor", "mor")}); err != nil || !strings.Contains(answer, "the user's") {
		t.Errorf("a tool that is not hidden, by a hash: %s, %v", answer, err)
	}
}
