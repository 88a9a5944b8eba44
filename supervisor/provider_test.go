package supervisor_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// TestAProgramGivesServersTheirCredentials: the Authorizer that the program has for a server signs that server's
// requests, and no other's; its error is the server's failure.
func TestAProgramGivesServersTheirCredentials(t *testing.T) {
	mcp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch said := r.Header.Get("Authorization"); {
		case said != map[string]string{"/signed": "Bearer for signed"}[r.URL.Path]:
			http.Error(w, "not the credentials of this server: "+said, http.StatusForbidden)
		case strings.Contains(string(body), `"initialize"`):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer mcp.Close()
	spec := func(path string) supervisor.Spec {
		return supervisor.Spec{URL: mcp.URL + path, Era: messages.EraLegacy}
	}
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		Servers: map[string]supervisor.Spec{"signed": spec("/signed"), "plain": spec("/plain"), "broken": spec("/broken")},
		AuthProvider: func(server string, _ supervisor.Spec) (transports.Authorizer, error) {
			switch server {
			case "signed":
				return auth.Bearer(auth.Text("for " + server)), nil
			case "broken":
				return nil, errors.New("the key file is missing")
			}
			return nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, m)
	settled(t, m)
	for name, want := range map[string]string{"signed": "", "plain": "", "broken": "the key file is missing"} {
		st, err := m.ServerStatus(name)
		if err != nil {
			t.Fatal(err)
		}
		if (st.Status == messages.Connected) != (want == "") || !strings.Contains(st.Error, want) {
			t.Errorf("%s is %s: %q", name, st.Status, st.Error)
		}
	}
}

// sealed is an Authorizer that has no credentials, and says why.
type sealed struct{}

func (sealed) Authorize(context.Context, http.Header) error { return errors.New("the vault is sealed") }

func (sealed) Refused(context.Context, int, *messages.Challenge, http.Header) (bool, error) {
	return false, nil
}

// TestACallSaysWhyThereAreNoCredentials: the error of a call that is not sent has the reason of the program's own Authorizer, and not the
// status alone.
func TestACallSaysWhyThereAreNoCredentials(t *testing.T) {
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		Servers:      map[string]supervisor.Spec{"kept": {URL: "http://127.0.0.1:1/mcp"}}, // nothing is sent
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) { return sealed{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, m)
	settled(t, m)
	_, err = m.CallServerTool(t.Context(), "kept", "x", nil)
	var e *supervisor.Error
	if !errors.As(err, &e) || e.Class != messages.ClassUnauthorized || !strings.Contains(e.Text, "the vault is sealed") || e.Fix == "" {
		t.Errorf("%v", err)
	}
}
