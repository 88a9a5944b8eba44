package gateway

import (
	"errors"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// 2025-11-25, Progress: "Progress tokens MUST be a string or integer value." Every text and every number is one, 0 as well; nothing else is.
func TestWhatIsAProgressToken(t *testing.T) {
	for value, want := range map[string]bool{
		`0`: true, `1`: true, `9`: true, `-1`: true, `42`: true, `"x"`: true, `""`: true, `"0"`: true,
		`null`: false, `true`: false, `{}`: false, `[1]`: false,
	} {
		token := progressToken([]byte(`{"a":1,"progressToken":` + value + `}`))
		if want && string(token) != value || !want && token != nil {
			t.Errorf("%s: %q", value, token)
		}
	}
	for _, meta := range []string{"", "{}", `{"a":{"progressToken":1}}`} {
		if token := progressToken([]byte(meta)); token != nil {
			t.Errorf("%s: %q", meta, token)
		}
	}
}

// What of _meta belongs to this hop stays here; the rest goes on in its order.
func TestWhatOfMetaGoesOn(t *testing.T) {
	for meta, want := range map[string]string{
		``:                    ``,
		`{}`:                  ``,
		`{"progressToken":1}`: ``,
		`{"io.modelcontextprotocol/related-task":{"taskId":"1"}}`:                  ``,
		`{"a":1,"progressToken":"x","example.org/b":{"c":[1]}}`:                    `{"a":1,"example.org/b":{"c":[1]}}`,
		`{"progressToken":"x","a":null,"io.modelcontextprotocol/logLevel":"info"}`: `{"a":null}`,
		`{"io.modelcontextprotocol":1,"progresstoken":2,"x/progressToken":3}`:      `{"io.modelcontextprotocol":1,"progresstoken":2,"x/progressToken":3}`,
	} {
		var o wire.Options
		if keepMeta([]byte(meta), &o); string(o.Meta) != want {
			t.Errorf("%s: %s goes on, not %s", meta, o.Meta, want)
		}
	}
}

// A listener that names a task which is gone by now is told nothing of it.
func TestAListenerIsToldNothingOfATaskThatIsGone(t *testing.T) {
	l := &listening{request: &serve.Request{Session: &serve.Session{}}, tasks: map[string]bool{"gone": true}}
	new(Gateway).tellEndedTasks(l)
}

// The sizes of results are remembered by tool, and those of other requests by server: an agent makes up as many URIs as it likes.
func TestByWhatSizesAreRemembered(t *testing.T) {
	to := named{server: "one", name: "x:///1"}
	for method, want := range map[string]named{
		"tools/call": to, "resources/read": {server: "one"}, "prompts/get": {server: "one"}, "completion/complete": {server: "one"},
	} {
		if got := sizeKey(&serve.Request{Method: method}, to); got != want {
			t.Errorf("%s: %+v", method, got)
		}
	}
}

func TestWhatIsAPrefix(t *testing.T) {
	for p, want := range map[Prefix]bool{PrefixAlways: true, PrefixConflict: true, PrefixNever: true, "": false, "sometimes": false} {
		if p.Valid() != want {
			t.Errorf("%q", p)
		}
	}
}

// A server whose agent cannot be asked for roots is told so, if no other agent shares any.
func TestWithoutRootsTheReasonIsTold(t *testing.T) {
	shown := &messages.Error{Err: messages.ErrNotShown}
	roots, err := new(Gateway).rootsFrom("one", func() ([]byte, error) { return nil, shown })
	if len(roots) != 0 || !errors.Is(err, messages.ErrNotShown) {
		t.Errorf("%v, %v", roots, err)
	}
}
