package differential

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A view is one way through the gateway to the mirror.
type view struct {
	// one is the view of the one server by its own path; prefix is put before names.
	one    bool
	prefix string
	lines  bool
	// bridge is the way by the command connect.
	bridge bool
}

// openBridge returns a client of the command connect, before a server; nil where that is not run.
var openBridge func(t *testing.T, spec supervisor.Spec, modern bool) (client, error)

// shownNames are the names that a view with prefixes shows for the names that are no names for a model: those are told apart by a hash.
var shownNames = map[string]string{"große-Äpfel": "gro_e-_pfel_k6g56gkm68", "a.b/c": "a_b_c_gss0swn5rx"}

// views are all ways: by the path of the server, by names without and with that of the server, over HTTP and on lines.
var views = []view{{one: true}, {}, {prefix: "mirror__"}, {one: true, lines: true}, {lines: true}, {prefix: "mirror__", lines: true}}

func (v view) String() string {
	text := "names as they are"
	switch {
	case v.one:
		text = "the server's own path"
	case v.prefix != "":
		text = "names with " + v.prefix
	}
	switch {
	case v.bridge:
		return text + ", through connect"
	case v.lines:
		return text + ", on lines"
	}
	return text + ", over HTTP"
}

// named returns params with the names that the view shows.
func (v view) named(method string, params *value) *value {
	switch method {
	case "tools/call", "prompts/get":
		return v.withPrefix(params)
	case "completion/complete":
		c := params.clone()
		for i, name := range c.names {
			if name == `"ref"` && c.items[i].open == '{' {
				c.items[i] = v.withPrefix(c.items[i])
			}
		}
		return c
	}
	return params
}

func (v view) withPrefix(o *value) *value {
	if o.open != '{' {
		return o
	}
	c := o.clone()
	for i, name := range c.names {
		if text := (&value{open: '{', names: []string{name}, items: c.items[i : i+1]}).member("name"); text.isText() && !text.isEmpty() {
			own, _ := rawjson.Text([]byte(text.text))
			if other := shownNames[own]; other != "" {
				c.items[i] = textOf(v.prefix + other)
			} else {
				c.items[i] = scalar(`"` + v.prefix + text.text[1:])
			}
		}
	}
	return c
}

// A cell is one server behind the gateway: its transport and its era.
type cell struct {
	transport string
	modern    bool
}

var cells = []cell{{"stdio", false}, {"stdio", true}, {"http", false}, {"http", true}}

func (c cell) String() string {
	return map[bool]string{false: "legacy ", true: "modern "}[c.modern] + c.transport
}

// A stand is a cell with clients: one of the server itself, and one for each view.
type stand struct {
	cell
	direct  client
	through []client
}

// openStand starts two mirrors that behave the same, one of them behind a gateway with these ways to it. All ends with the test.
func openStand(t *testing.T, c cell, ways []view) *stand {
	t.Helper()
	s := &stand{cell: c}
	spec := supervisor.Spec{Era: messages.EraLegacy}
	if c.modern {
		spec.Era = messages.EraModern
	}
	var err error
	if c.transport == "stdio" {
		self, args := os.Args[0], []string{"differential-mirror", string(spec.Era)}
		spec.Command, spec.Args = self, args
		s.direct, err = startLines(exec.Command(self, args...), c.modern)
	} else {
		one, other := httptest.NewServer(newWebMirror(c.modern)), httptest.NewServer(newWebMirror(c.modern))
		t.Cleanup(one.Close)
		t.Cleanup(other.Close)
		spec.Type, spec.URL = messages.HTTP, other.URL+"/mcp"
		s.direct, err = newWebClient(one.URL+"/mcp", c.modern)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.direct.close)
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"mirror": spec}, CallWait: gateway.CallWait}
	gateway.PassQuestions(&cfg)
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := m.Ready(t.Context(), "mirror"); err != nil {
		t.Fatal(err)
	}
	bare := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
	t.Cleanup(bare.Close)
	prefixed := gateway.New(gateway.Config{Manager: m})
	t.Cleanup(prefixed.Close)
	for _, v := range ways {
		g := bare
		if v.prefix != "" {
			g = prefixed
		}
		var c client
		if v.bridge {
			if c, err = openBridge(t, spec, s.modern); err == nil {
				t.Cleanup(c.close)
			}
		} else {
			c, err = openView(t, g, v, s.modern)
		}
		if err != nil {
			t.Fatal(v, err)
		}
		s.through = append(s.through, c)
	}
	return s
}

// startLines starts a mirror on lines, or a way to one, and returns a client of it.
func startLines(cmd *exec.Cmd, modern bool) (client, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return newLineClient(out, in, modern, func() { _ = cmd.Wait() }) // it ends with its input
}

// openView returns a client of the gateway.
func openView(t *testing.T, g *gateway.Gateway, v view, modern bool) (client, error) {
	server := ""
	if v.one {
		server = "mirror"
	}
	if v.lines {
		theirs, ours := io.Pipe()
		back, answers := io.Pipe()
		ended := make(chan struct{})
		go func() { // it ends with its input
			defer close(ended)
			defer answers.Close()
			if err := serve.Stdio(context.Background(), serve.Options{Service: g}, serve.Principal{}, serve.Path{Server: server}, theirs, answers); err != nil {
				fmt.Fprintln(os.Stderr, "serve.Stdio:", err)
			}
		}()
		c, err := newLineClient(back, ours, modern, func() { <-ended })
		t.Cleanup(c.close)
		return c, err
	}
	h := serve.NewHandler(serve.Options{Service: g})
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	path := "/mcp"
	if server != "" {
		path += "/s/" + server
	}
	c, err := newWebClient(web.URL+path, modern)
	if err != nil {
		return nil, err
	}
	t.Cleanup(c.close)
	return c, nil
}
