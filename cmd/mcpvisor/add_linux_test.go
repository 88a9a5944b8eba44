package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// written returns the local file of the place, and checks that only its owner may read it.
func (p *place) written() string {
	p.t.Helper()
	file := filepath.Join(p.dir, ".mcpvisor", "mcp.local.json")
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		p.t.Errorf("%v, %v", info.Mode(), err)
	}
	return string(text)
}

// TestAddAsksForAToken adds a server that answers 401: the command asks for a token, which stays off the screen, and connects
// with it.
func TestAddAsksForAToken(t *testing.T) {
	seeds.Shows(t, "002.7.add-asks-for-token")
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer typed in secret" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		servePatient(w, r)
	}))
	t.Cleanup(s.Close)
	p := newPlace(t, "")
	term := p.onTerminal(nil, "add", "private", s.URL)
	at := term.shows(0, `Added server private to the local scope: http · http://127\.0\.0\.1:\d+\r\n`)
	at = term.shows(at, `private wants credentials\. \[s\]ign in with the browser, type a \[t\]oken, or \[l\]ater\? `)
	term.types("t\r")
	at = term.shows(at, `The token of private, sent as Authorization: Bearer: not shown while you type; .*\r\n> `)
	term.types("\r")
	at = term.shows(at, `An answer is required\.\r\n> `)
	term.types("typed in secret\r")
	term.shows(at, `private: .*connected.*  patient 1 in .* · 1 tool\r\n  • mcp__private__wait\r\n`)
	term.exits(exit.OK)
	if strings.Contains(term.text(), "secret") {
		t.Errorf("the token is on the screen:\n%q", term.text())
	}
	if text := p.written(); !strings.Contains(text, `"Authorization": "Bearer typed in secret"`) {
		t.Errorf("the file is %s", text)
	}

	term = p.onTerminal(nil, "add", "later", s.URL)
	term.shows(0, `or \[l\]ater\? `)
	term.types("l\r")
	term.shows(0, `server "later": it needs credentials`)
	term.exits(exit.Failed)
	if text := p.written(); !strings.Contains(text, `"later"`) {
		t.Errorf("the file is %s", text)
	}
}

// TestAddAsksForValues adds servers with variables that have no value or are not set: the command asks for them, and writes
// nothing after Ctrl-C.
func TestAddAsksForValues(t *testing.T) {
	seeds.Shows(t, "002.7.add-asks-for-token")
	t.Parallel()
	p := newPlace(t, "")
	term := p.onTerminal(nil, "add", "one", "--env", "TOKEN", "--env", "B=x${NO_SUCH_B}", "--env", "C=${NO_SUCH_C:-c}",
		"--no-connect", "fixture", "mcp-fixture", "good")
	at := term.shows(0, `The value of TOKEN: not shown while you type`)
	term.types("secret 1\r")
	at = term.shows(at, `NO_SUCH_B, which B names, is not set\. Its value, .*\r\n> `)
	term.types("secret 2\r")
	term.shows(at, `Added server one to the local scope: stdio · fixture mcp-fixture good · env B, C, TOKEN\r\n`)
	term.exits(exit.OK)
	if strings.Contains(term.text(), "secret") {
		t.Errorf("a value is on the screen:\n%q", term.text())
	}
	text := p.written()
	for _, want := range []string{`"B": "xsecret 2"`, `"C": "${NO_SUCH_C:-c}"`, `"TOKEN": "secret 1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}

	term = p.onTerminal(nil, "add", "two", "--env", "TOKEN", "fixture")
	at = term.shows(0, `The value of TOKEN`)
	term.types("half\x03")
	term.shows(at, `interrupted`)
	term.exits(exit.Interrupted)
	if strings.Contains(p.written(), "two") {
		t.Error("what was broken off is written")
	}
}
