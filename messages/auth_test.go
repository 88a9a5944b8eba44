package messages_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// setField gives one field of an Auth a value that is not its zero value, with mark in it where that fits.
func setField(t *testing.T, a *messages.Auth, i int, mark string) {
	t.Helper()
	v := reflect.ValueOf(a).Elem().Field(i)
	name := reflect.TypeFor[messages.Auth]().Field(i).Name
	switch v.Interface().(type) {
	case string:
		v.SetString(mark)
		if strings.HasSuffix(name, "URL") || name == "Issuer" || name == "Resource" {
			v.SetString("https://" + mark + "@h/p?k=" + mark)
		}
	case []string:
		v.Set(reflect.ValueOf([]string{"--token=" + mark}))
	case map[string]string:
		v.Set(reflect.ValueOf(map[string]string{"NAME": mark}))
	case int:
		v.SetInt(7)
	case messages.Duration:
		v.SetInt(7e6)
	default:
		t.Fatalf("%s has a kind that this test does not know: %s", name, v.Type())
	}
}

// TestEveryFieldOfAuth sets one field after another. One that does not travel would be lost on a server that another
// actor adds; one that Equal does not see would let a changed server run on with its old credentials; one that is shown
// must be no secret.
func TestEveryFieldOfAuth(t *testing.T) {
	typ := reflect.TypeFor[messages.Auth]()
	// Names of things: they say where a secret is and are none.
	shown := map[string]bool{"Type": true, "HeaderName": true, "FromEnv": true, "TokenPath": true, "ClientID": true,
		"ClientKeyFile": true, "ClientKeyID": true, "ClientKeyAlgorithm": true, "Scopes": true, "SubjectTokenType": true,
		"Audience": true, "CallbackPort": true, "Timeout": true, "Command": true}
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		spec := messages.Spec{URL: "https://h", Auth: &messages.Auth{}}
		setField(t, spec.Auth, i, "canary-value")
		wire, err := proto.Marshal(spec.ToProto())
		if err != nil {
			t.Fatal(err)
		}
		var p messages.ServerSpec
		if err := proto.Unmarshal(wire, &p); err != nil {
			t.Fatal(err)
		}
		if second := p.ToSpec(); !reflect.DeepEqual(second.Auth, spec.Auth) || !second.Equal(spec) {
			t.Errorf("%s travels as %+v", name, second.Auth)
		}
		if spec.Equal(messages.Spec{URL: "https://h", Auth: &messages.Auth{}}) {
			t.Errorf("Equal does not see %s", name)
		}
		raw, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		var back messages.Spec
		if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back.Auth, spec.Auth) {
			t.Errorf("%s is written as %s and read as %+v, %v", name, raw, back.Auth, err)
		}
		text := fmt.Sprintf("%+v", *spec.Redacted().Auth)
		if strings.Contains(text, "canary-value") && !shown[name] {
			t.Errorf("%s is shown: %s", name, text)
		}
		if hidden := spec.RedactText("it says canary-value"); strings.Contains(hidden, "canary") && !shown[name] {
			t.Errorf("%s is not hidden: %s", name, hidden)
		}
	}
}

// A program without arguments is not a line for the shell.
func TestAuthArgs(t *testing.T) {
	program := messages.Spec{URL: "https://h", Auth: &messages.Auth{Command: "a b", Args: []string{}}}
	line := messages.Spec{URL: "https://h", Auth: &messages.Auth{Command: "a b"}}
	if program.Equal(line) {
		t.Error("they are equal")
	}
	for _, s := range []messages.Spec{program, line} {
		if got := s.ToProto().ToSpec().Auth; (got.Args == nil) != (s.Auth.Args == nil) {
			t.Errorf("%+v travels as %+v", s.Auth, got)
		}
		if got := s.Redacted().Auth; (got.Args == nil) != (s.Auth.Args == nil) {
			t.Errorf("%+v is shown as %+v", s.Auth, got)
		}
	}
}

func TestAuthKind(t *testing.T) {
	for _, c := range []struct {
		spec messages.Spec
		want string
	}{
		{messages.Spec{Command: "x"}, messages.AuthNone},
		{messages.Spec{URL: "https://h"}, messages.AuthOAuth},
		{messages.Spec{URL: "https://h", Headers: map[string]string{"X-Team": "a"}}, messages.AuthOAuth},
		{messages.Spec{URL: "https://h", Headers: map[string]string{"authorization": "a"}}, messages.AuthNone},
		{messages.Spec{URL: "https://h", Auth: &messages.Auth{Type: messages.AuthNone}}, messages.AuthNone},
		{messages.Spec{URL: "https://h", Auth: &messages.Auth{Type: messages.AuthHelper}}, messages.AuthHelper},
	} {
		if got := c.spec.AuthKind(); got != c.want {
			t.Errorf("%+v has %s, want %s", c.spec, got, c.want)
		}
	}
}
