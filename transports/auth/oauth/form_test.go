package oauth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/formtest"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// TestTheFormOfASignIn reads and writes a record of version 1. If this test fails, the sign-ins of everybody are lost, or an older
// program loses what this one stores: raise signInVersion, and go on reading this one.
func TestTheFormOfASignIn(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "signin1.json"))
	if err != nil {
		t.Fatal(err)
	}
	formtest.Check(t, storedSignIn{}, golden)
	cfg := config(newWorld())
	cfg.URL = "https://mcp.example.com/mcp?team=a&b"
	h, err := make1(t, cfg).decodeStored(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.encodeJSON(); string(got) != string(golden) {
		t.Errorf("it is written as\n%s\nand not as\n%s", got, golden)
	}
}

// TestNewerSignInsStay: the record of a newer program is not used and not replaced, neither by a request, nor by a sign-in, which no
// person is asked for, nor by a sign-out, which could not revoke it.
func TestNewerSignInsStay(t *testing.T) {
	for name, record := range map[string]string{
		"version": `{"version":2,"url":["https://mcp.example.com/mcp"],"tokens":{}}`,
		"member":  `{"version":1,"url":"https://mcp.example.com/mcp","access":"a","refresh":"r","bound":"key"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			cfg := config(w)
			a := make1(t, cfg)
			if err := cfg.Store.Put(t.Context(), a.key, []byte(record)); err != nil {
				t.Fatal(err)
			}
			asked := 0
			for what, do := range map[string]func() error{
				"a request": func() error { _, err := currentBearer(t, a); return err },
				"a refusal": func() error { _, err := refused(t, a, "other"); return err },
				"a sign-in": func() error {
					_, err := a.Login(t.Context(), Prompt{NoListen: true, Show: func(SignInRequest) { asked++ },
						Paste: func(context.Context, string) (string, error) { return "", errors.New("nothing was pasted") }})
					return err
				},
				"a sign-out": func() error { _, err := a.Logout(t.Context()); return err },
				"forgetting": func() error { _, err := a.Forget(t.Context()); return err },
				"an update": func() error {
					_, err := a.updateStored(t.Context(), func(*storedSignIn) error { return nil })
					return err
				},
			} {
				err := do()
				var newer *files.NewerError
				if !errors.As(err, &newer) || !strings.HasPrefix(err.Error(), `the stored sign-in of mcp.example.com was written by a newer mcpvisor`) ||
					!strings.HasSuffix(err.Error(), "; upgrade mcpvisor") {
					t.Errorf("%s: %v", what, err)
				}
				wantClass(t, err, messages.ClassConfig)
			}
			if now, err := cfg.Store.Get(t.Context(), a.key); err != nil || string(now) != record || asked > 0 || w.tokenRequests() > 0 {
				t.Errorf("%q, %v; the person was asked %d times", now, err, asked)
			}
			// A damaged one is replaced: no program can use it.
			if err := cfg.Store.Put(t.Context(), a.key, []byte(record[:20])); err != nil {
				t.Fatal(err)
			}
			if name == "member" {
				if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
