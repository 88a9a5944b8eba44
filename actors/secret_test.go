package actors

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A server that writes its own secret into the description of a tool, or into its instructions, does not get it into the status,
// which programs print and log.
func TestAStatusHidesWhatAServerTellsOfItsSecrets(t *testing.T) {
	const secret = "token-0123456789abcdef"
	v := View{
		Name: "s", Spec: &messages.Spec{Command: "s", Env: map[string]string{"API_TOKEN": secret}},
		State: lifecycle.State{Phase: messages.Connected, Wanted: true, Conn: lifecycle.Open},
		Tools: &session.ToolList{Tools: []messages.Tool{{Name: "leak", Description: "Uses " + secret + " to read."}}},
	}
	v.Info = &session.Info{Instructions: "Begin with " + secret + "."}
	text, err := json.Marshal(v.Status())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Errorf("the secret is in %s", text)
	}
	for _, kept := range []string{"Uses ", " to read.", "Begin with "} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%q is gone from %s", kept, text)
		}
	}
}

// The error of a call holds what its server said, and that may be the secret with which it could not log in.
func TestTheErrorOfACallHidesSecrets(t *testing.T) {
	const secret = "token-0123456789abcdef"
	cell := NewCell(&View{Name: "s", Spec: &messages.Spec{Command: "s", Env: map[string]string{"API_TOKEN": secret}}})
	calls := Calls{Cell: func(string) *Cell { return cell }}
	for what, said := range map[string]error{
		"an error of the server": &messages.Error{Outcome: messages.OutcomeRejected, Text: "no access with " + secret},
		"any other error":        errors.New("no access with " + secret),
	} {
		if text := calls.completeError(said, &Request{Server: "s"}).Error(); strings.Contains(text, secret) || !strings.Contains(text, "no access with") {
			t.Errorf("%s: %s", what, text)
		}
	}
	// What a program may pass on keeps its bytes where it holds no secret.
	said := &messages.Error{Outcome: messages.OutcomeRejected, Text: "no", Data: json.RawMessage(`{ "with" : "` + secret + `" }`),
		Reply: json.RawMessage(`{"code":-1, "message":"no access with ` + secret + `"}`)}
	e := calls.completeError(said, &Request{Server: "s"}).(*messages.Error)
	if strings.Contains(string(e.Data)+string(e.Reply), secret) || !json.Valid(e.Data) || !json.Valid(e.Reply) {
		t.Errorf("%s, %s", e.Data, e.Reply)
	}
	said.Reply = json.RawMessage(`{"code":-1, "message":"no"}`)
	if e := calls.completeError(said, &Request{Server: "s"}).(*messages.Error); string(e.Reply) != string(said.Reply) {
		t.Errorf("%s", e.Reply)
	}
}

// A text that mentions a secret twice shows none of the two, whether the secret stands in the spec or was given otherwise.
func TestEachMentionOfASecretIsHidden(t *testing.T) {
	const inSpec, given = "token-0123456789abcdef", "given-fedcba9876543210"
	cell := NewCell(&View{Name: "s", Spec: &messages.Spec{Command: "s", Env: map[string]string{"API_TOKEN": inSpec}}})
	cell.GivenSecrets = func() []string { return []string{given} }
	for _, secret := range []string{inSpec, given} {
		if text := cell.RedactText("first " + secret + " then " + secret); strings.Contains(text, secret) || !strings.Contains(text, " then ") {
			t.Errorf("the secret is in %q", text)
		}
	}
}
