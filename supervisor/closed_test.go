package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Whatever is asked of a manager that is closed, it says so at once, and a call is not sent.
func TestAClosedManagerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{}, map[string]*fake{"a": newFake("x")})
		settled(t, m)
		closeAll(t, m)
		ctx, spec := t.Context(), supervisor.Spec{Type: messages.SDK}
		for what, do := range map[string]func() error{
			"Connect":             func() error { return m.Connect(ctx, "a", spec) },
			"Disconnect":          func() error { return m.Disconnect(ctx, "a") },
			"enable":              func() error { return m.Toggle(ctx, "a", true) },
			"disable":             func() error { return m.Toggle(ctx, "a", false) },
			"Reconnect":           func() error { return m.Reconnect(ctx, "a") },
			"Refresh":             func() error { return m.Refresh(ctx, "a") },
			"Remove":              func() error { return m.Remove(ctx, "a") },
			"SetServers":          func() error { _, err := m.SetServers(ctx, map[string]supervisor.Spec{"a": spec}); return err },
			"Configure":           func() error { _, err := m.Configure(ctx, map[string]supervisor.Spec{"a": spec}); return err },
			"Settled":             func() error { return m.Settled(ctx) },
			"Ready":               func() error { return m.Ready(ctx) },
			"CallServerTool":      func() error { _, err := m.CallServerTool(ctx, "a", "x", nil); return err },
			"ReadResource":        func() error { _, err := m.ReadResource(ctx, "x:///1"); return err },
			"ReadServerResource":  func() error { _, err := m.ReadServerResource(ctx, "a", "x:///1"); return err },
			"SubscribeResource":   func() error { return m.SubscribeResource(ctx, "a", "x:///1") },
			"UnsubscribeResource": func() error { return m.UnsubscribeResource(ctx, "a", "x:///1") },
			"GetServerPrompt":     func() error { _, err := m.GetServerPrompt(ctx, "a", "p", nil); return err },
			"ConnectAll":          func() error { return m.ConnectAll(ctx) },
			"DisconnectAll":       func() error { return m.DisconnectAll(ctx) },
			"ToolsOf":             func() error { _, err := m.ToolsOf(ctx); return err },
			"ToolsOf one":         func() error { _, err := m.ToolsOf(ctx, "a"); return err },
			"Resources":           func() error { _, err := m.Resources(ctx); return err },
			"Resources of one":    func() error { _, err := m.Resources(ctx, "a"); return err },
			"ResourceTemplates":   func() error { _, err := m.ResourceTemplates(ctx); return err },
			"Prompts":             func() error { _, err := m.Prompts(ctx); return err },
			"GetPrompt":           func() error { _, err := m.GetPrompt(ctx, "mcp__a__p", nil); return err },
			"Tasks":               func() error { _, err := m.Tasks(ctx, "a"); return err },
			"Task":                func() error { _, err := m.Task(ctx, "a", "1"); return err },
			"TaskResult":          func() error { _, err := m.TaskResult(ctx, "a", "1"); return err },
			"CancelTask":          func() error { return m.CancelTask(ctx, "a", "1") },
			"ServerStatus":        func() error { _, err := m.ServerStatus("a"); return err },
			"History":             func() error { _, err := m.History("a"); return err },
			"Ping":                func() error { _, err := m.Ping(ctx, "a"); return err },
		} {
			if err := do(); !errors.Is(err, supervisor.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// A request that waits for its turn is not sent when its server is taken away, and neither is one that comes while the calls of the server end.
// Its error is not that of a server which can be enabled.
func TestWhoWaitsForAServerThatIsTakenAwayIsNotToldToEnableIt(t *testing.T) {
	for what, end := range map[string]struct {
		act func(context.Context, *supervisor.Manager) error
		err error
	}{
		"SetServers": {func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Configure(ctx, map[string]supervisor.Spec{})
			return err
		}, supervisor.ErrUnknownServer},
		"Close": {func(ctx context.Context, m *supervisor.Manager) error {
			go func() { _ = m.Close(ctx) }()
			return nil
		}, supervisor.ErrClosed},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake("work")
			f.onCall = hang
			m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, MaxInFlight: 1}}}, map[string]*fake{"a": f})
			settled(t, m)
			ctx, leave := context.WithCancel(t.Context())
			runs := callBy(ctx, m, "")
			synctest.Wait()
			waits := callBy(ctx, m, "")
			synctest.Wait()
			if err := end.act(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			_, late := m.CallServerTool(t.Context(), "a", "work", nil)
			for _, err := range []error{<-waits, late} {
				if !errors.Is(err, end.err) || !errors.Is(err, supervisor.ErrNotSent) || errors.Is(err, supervisor.ErrDisabled) {
					t.Errorf("%s: %v", what, err)
				}
			}
			leave()
			<-runs
		})
	}
}

// A spec that cannot work is refused with what is missing; nothing is dialed for it.
func TestWhatASpecLacksIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{AllowedTransports: []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SDK, messages.ClaudeAIProxy}},
			map[string]*fake{"a": newFake("x")})
		for text, spec := range map[string]supervisor.Spec{
			"it has neither a command nor a url":                      {},
			"a stdio server needs a command":                          {Type: messages.Stdio},
			`a server of type "http" needs a url`:                     {Type: messages.HTTP},
			"needs the id of its connector":                           {Type: messages.ClaudeAIProxy, URL: "https://example.org"},
			`the transport "sse" is not allowed here`:                 {Type: messages.SSE, URL: "https://example.org"},
			`no in-process server is registered as "nobody"`:          {Type: messages.SDK, Name: "nobody"},
			"its tls has a certificate or a private key without the ": {URL: "https://example.org", TLS: &messages.TLS{CertFile: "c"}},
			`the era "late" is unknown`:                               {Command: "x", Era: "late"},
			`the pin "tight" is unknown`:                              {Command: "x", Pin: "tight"},
			`the log level "loud" is unknown`:                         {Command: "x", LogLevel: "loud"},
			`the share "principals" is unknown`:                       {Command: "x", Share: "principals"},
			`the connect "lasy" is unknown`:                           {Command: "x", Connect: "lasy"},
			"maxInstances is negative":                                {Command: "x", Share: supervisor.SharePrincipal, MaxInstances: -1},
			"instanceIdle is negative":                                {Command: "x", Share: supervisor.SharePrincipal, InstanceIdle: -1},
			"connectTimeout is negative":                              {Command: "x", ConnectTimeout: -1},
		} {
			err := m.Connect(t.Context(), "b", spec)
			if messages.ClassOf(err) != messages.ClassConfig && messages.ClassOf(err) != messages.ClassInvalid || !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if err := m.Connect(t.Context(), "", supervisor.Spec{Command: "x"}); err == nil || !strings.Contains(err.Error(), "a server needs a name") {
			t.Errorf("%v", err)
		}
		if err := m.Connect(t.Context(), "a", supervisor.Spec{}); err == nil || !strings.Contains(err.Error(), `is of type "sdk"`) {
			t.Errorf("a spec of no type for a server of Config.InProcess: %v", err)
		}
		if got := m.Servers(); len(got) != 1 {
			t.Errorf("the servers are %q", got)
		}
	})
}

// The text of a result has a remark in place of each part that is no text.
func TestTheTextOfAResultNamesWhatIsNoText(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:           "a\nb",
		`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}`:           "[image image/png, 4 bytes of base64]",
		`{"content":[{"type":"audio","mimeType":"audio/wav","data":"AA=="}]}`:           "[audio audio/wav, 4 bytes of base64]",
		`{"content":[{"type":"resource_link","uri":"x:///1","name":"n"}]}`:              "[link x:///1]",
		`{"content":[{"type":"resource","resource":{"uri":"x:///1","text":"within"}}]}`: "within",
		`{"content":[{"type":"resource","resource":{"uri":"x:///1","blob":"AAAA"}}]}`:   "[resource x:///1]",
		`{"content":[{"type":"resource","resource":7}]}`:                                "[resource ]",
		`{"content":[{"type":"hologram"},7]}`:                                           "[hologram]\n[]",
		`{"content":[],"structuredContent":{"n":1}}`:                                    `{"n":1}`,
		`{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1}}`:          "a",
		`{"content":[{"type":"text","text":""}],"structuredContent":{"n":1}}`:           "",
		`{"content":[]}`: "",
	} {
		if got := (&supervisor.Result{Raw: []byte(raw)}).Text(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
	r := &supervisor.ResourceResult{Raw: []byte(`{"contents":[{"uri":"x:///1","text":"a"},{"uri":"x:///2","mimeType":"image/png","blob":"AAAA"}]}`)}
	if got := r.Text(); got != "a\n[x:///2 image/png, 4 bytes of base64]" {
		t.Errorf("%q", got)
	}
	parts := r.Contents()
	if b, err := parts[0].Bytes(); err != nil || string(b) != "a" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := parts[1].Bytes(); err != nil || string(b) != "\x00\x00\x00" {
		t.Errorf("%q, %v", b, err)
	}
	parts[1].Blob = "!"
	if _, err := parts[1].Bytes(); err == nil {
		t.Error("what is no base64 was decoded")
	}
}
