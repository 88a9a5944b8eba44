package supervisor

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// A sign-in is good, was good, is missing, or cannot be known; of an error only the words of our own are shown.
func TestTheStateOfASignIn(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		st      oauth.Status
		err     error
		want    AuthState
		problem string
	}{
		{oauth.Status{SignedIn: true, Issuer: "i", Expires: at}, nil, AuthSignedIn, ""},
		{oauth.Status{Issuer: "i"}, nil, AuthExpired, ""},
		{oauth.Status{Expires: at}, nil, AuthExpired, ""},
		{oauth.Status{}, nil, AuthSignedOut, ""},
		{oauth.Status{SignedIn: true}, &transports.Error{Class: messages.ClassConfig, Text: "the store is locked"}, AuthUnknown, "the store is locked"},
		{oauth.Status{}, errors.New("secret"), AuthUnknown, ""},
	} {
		var s AuthStatus
		if s.setSignIn(c.st, c.err); s.State != c.want || s.Problem != c.problem {
			t.Errorf("%+v, %v: %+v", c.st, c.err, s)
		}
	}
	var s AuthStatus
	st := oauth.Status{SignedIn: true, Who: "anna", Issuer: "i", Scopes: []string{"a"}, Wanted: []string{"b"}, Expires: at, Renewable: true, Where: "here", Unsaved: true}
	s.setSignIn(st, nil)
	if want := (AuthStatus{State: AuthSignedIn, Who: "anna", Issuer: "i", Scopes: []string{"a"}, Wanted: []string{"b"}, Expiry: at, Renewable: true, Where: "here", Unsaved: true}); !reflect.DeepEqual(s, want) {
		t.Errorf("%+v", s)
	}
}

// A server that is removed while a person signs in to it is connected by nothing.
func TestAServerThatIsRemovedDuringItsSignInStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startEcho(t, nil)
		if err := m.reconnectIfDown(t.Context(), "removed"); err != nil || len(m.Servers()) != 2 {
			t.Errorf("%v, %v", err, m.Servers())
		}
		if err := m.reconnectIfDown(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if m.showsTools("removed") || !m.showsTools("a") {
			t.Error("a server that is gone shows tools, or one that is there none")
		}
	})
}
