package supervisor_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// misdeeds are what a function of the program may do in the place of returning; stuck is closed at the end of the test.
func misdeeds(t *testing.T) map[string]func() {
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	return map[string]func(){"does not return": func() { <-stuck }, "panics": func() { panic("ouch") }, "ends its goroutine": runtime.Goexit}
}

// badAuthorizer gives the token, and does what the test says.
type badAuthorizer struct{ authorize, refused func() }

func (a badAuthorizer) Authorize(_ context.Context, h http.Header) error {
	a.authorize()
	h.Set("Authorization", "Bearer x")
	return nil
}

func (a badAuthorizer) Refused(context.Context, int, *messages.Challenge, http.Header) (bool, error) {
	a.refused()
	return false, nil
}

// TestAnAuthorizerThatBehavesBadly: its own server fails with a reason, the other one can be called, and the manager closes at once. A method
// that did not return once held Close for ever.
func TestAnAuthorizerThatBehavesBadly(t *testing.T) {
	for misdeed, do := range misdeeds(t) {
		for method, a := range map[string]badAuthorizer{"Authorize": {do, func() {}}, "Refused": {func() {}, do}} {
			t.Run(method+" "+misdeed, func(t *testing.T) {
				d := newHeaderServer(t, "Authorization", "Bearer other")
				spec := d.spec(nil)
				spec.ConnectTimeout = supervisor.Duration(100 * time.Millisecond)
				cfg := supervisortest.AddTo(supervisor.Config{Servers: map[string]supervisor.Spec{"bad": spec}}, supervisortest.NewServer("good", supervisortest.Echo("x")))
				cfg.AuthProvider = func(string, supervisor.Spec) (transports.Authorizer, error) { return a, nil }
				m := startWith(t, cfg)
				if err := m.Ready(t.Context(), "good"); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the failure of bad", func() bool {
					st, err := m.ServerStatus("bad")
					return err == nil && st.Attempts > 0
				})
				st, err := m.ServerStatus("bad")
				if err != nil || st.Class != messages.ClassTimeout && !strings.Contains(st.Error, "Authorizer") {
					t.Errorf("%s: %s, %v", st.Class, st.Error, err)
				}
				var e *supervisor.Error
				if _, err := m.CallServerTool(t.Context(), "bad", "x", nil); !errors.As(err, &e) || !errors.Is(err, supervisor.ErrNotSent) || e.Server != "bad" {
					t.Errorf("%#v", err)
				}
				if _, err := m.CallServerTool(t.Context(), "good", "x", nil); err != nil {
					t.Error(err)
				}
				if err := m.Close(context.Background()); err != nil { // the test's own bound is the only one
					t.Error(err)
				}
			})
		}
	}
}

// TestALoginPromptThatBehavesBadly: Login returns an error that names its server, when its context ends at the latest. It once hung, or ended
// the program.
func TestALoginPromptThatBehavesBadly(t *testing.T) {
	for misdeed, do := range misdeeds(t) {
		t.Run(misdeed, func(t *testing.T) {
			d := newHeaderServer(t, "Authorization", "Bearer x")
			m := startWith(t, supervisor.Config{
				Servers:     map[string]supervisor.Spec{"bad": d.spec(&supervisor.Auth{Type: "oauth"})},
				LoginPrompt: func(string) oauth.Prompt { do(); return oauth.Prompt{} },
			})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if misdeed != "does not return" {
				cancel()
				ctx, cancel = context.WithCancel(t.Context())
			}
			defer cancel()
			err := m.Login(ctx, "bad", supervisor.LoginOptions{})
			var e *supervisor.Error
			if !errors.As(err, &e) || e.Server != "bad" || !strings.Contains(e.Text, "Config.LoginPrompt") {
				t.Errorf("%#v", err)
			}
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
