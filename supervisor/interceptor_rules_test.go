package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The changes of an interceptor count for the arguments of a call, and for the server, the name and the _meta of a call, a read and a
// prompt. Everything else goes on as the caller asked for it, and the caller's own request stays as it is.
func TestWhatAnInterceptorMayChange(t *testing.T) {
	for _, c := range []struct {
		method           string
		subject, content bool // count
	}{
		{actors.CallTool, true, true}, {actors.ReadResource, true, false}, {actors.GetPrompt, true, false}, {"ping", false, false},
		{"tools/list", false, false}, {"completion/complete", false, false}, {actors.TaskResult, false, false},
	} {
		options := &session.Options{LogLevel: "info", Meta: json.RawMessage(`{"a":1}`)}
		asked := &actors.Request{Method: c.method, Server: "s", Name: "n", Args: json.RawMessage(`{"x":1}`), Options: options}
		r := new(actors.Request)
		(&interception{request: asked}).copyInto(r, &Request{Method: "changed", Server: "s2", Name: "n2", Arguments: json.RawMessage(`{"x":2}`), Meta: json.RawMessage(`{"a":2}`)})
		if r.Method != c.method || (r.Server == "s2") != c.subject || (r.Name == "n2") != c.subject || (string(r.Args) == `{"x":2}`) != c.content {
			t.Errorf("%s: %+v", c.method, r)
		}
		if (string(r.Options.Meta) == `{"a":2}`) != c.subject || r.Options.LogLevel != "info" {
			t.Errorf("%s: %+v", c.method, r.Options)
		}
		if asked.Server != "s" || asked.Name != "n" || string(asked.Args) != `{"x":1}` || string(options.Meta) != `{"a":1}` {
			t.Errorf("%s: the caller's own request is changed: %+v, %+v", c.method, asked, options)
		}
		plain := new(actors.Request)
		(&interception{request: &actors.Request{Method: c.method}}).copyInto(plain, &Request{})
		if plain.Options != nil {
			t.Errorf("%s without _meta gets options", c.method)
		}
		(&interception{request: &actors.Request{Method: c.method}}).copyInto(plain, &Request{Meta: json.RawMessage(`{"a":2}`)})
		if (plain.Options != nil) != c.subject {
			t.Errorf("%s: the first _meta: %+v", c.method, plain.Options)
		}
	}
}

// An interceptor that passes on nothing sends nothing, and the error tells its caller what the interceptor has left out.
func TestAnInterceptorThatPassesOnNothing(t *testing.T) {
	c := &interception{request: &actors.Request{Method: actors.CallTool, Server: "s", Name: "n"}}
	for missing, next := range map[string]struct {
		ctx     context.Context
		request *Request
	}{"context": {nil, &Request{Name: "n"}}, "request": {t.Context(), nil}, "name": {t.Context(), &Request{Server: "s"}}} {
		var e *Error
		if _, err := c.invoker(0)(next.ctx, next.request); !errors.As(err, &e) || e.Class != messages.ClassInvalid || e.Outcome != messages.OutcomeNotSent || e.Op != "call" ||
			!strings.Contains(e.Text, "without a "+missing) || e.Fix == "" {
			t.Errorf("%s: %v", missing, err)
		}
	}
}

// The error of a sign-in keeps its class and its challenge, by which a program decides, and of a program's own error one line.
func TestTheErrorOfASignIn(t *testing.T) {
	cause := errors.New("cause")
	challenge := &messages.Challenge{Scope: "read"}
	for what, c := range map[string]struct {
		err  error
		want Error
	}{
		"of a transport": {&transports.Error{Class: messages.ClassThrottled, Text: "slow down", Fix: "wait", Err: cause, Challenge: challenge, RetryAfter: time.Minute},
			Error{Class: messages.ClassThrottled, Text: "slow down", Fix: "wait", Err: cause, Challenge: challenge, RetryAfter: time.Minute}},
		"of ours": {&Error{Op: "other", Server: "other", Class: messages.ClassDenied, Text: "no", Fix: "ask", Err: cause},
			Error{Class: messages.ClassDenied, Text: "no", Fix: "ask", Err: cause}},
		"of a context":   {context.DeadlineExceeded, Error{Class: messages.ClassTimeout, Text: context.DeadlineExceeded.Error()}},
		"of the program": {errors.New("secret\nline"), Error{Class: messages.ClassNetwork, Text: messages.Line("secret\nline", 200)}},
	} {
		var e *Error
		if !errors.As(authError("login", "s", c.err), &e) {
			t.Fatalf("%s: it is none of ours", what)
		}
		if e.Op != "login" || e.Server != "s" || e.Class != c.want.Class || e.Text != c.want.Text || e.Fix != c.want.Fix || e.Err != c.want.Err ||
			e.Challenge != c.want.Challenge || e.RetryAfter != c.want.RetryAfter {
			t.Errorf("%s: %+v", what, e)
		}
	}
}
