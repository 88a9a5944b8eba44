package session

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/subscriptions"
)

// FuzzCompletion checks that no answer to completion/complete breaks the bounds.
func FuzzCompletion(f *testing.F) {
	f.Add([]byte(`{"values":["a",5,"b"],"total":3,"hasMore":true}`))
	f.Add([]byte(`{"values":[],"total":1e30}`))
	f.Add([]byte(`{"total":-1,"values":["\ud800"],"values":[` + strings.Repeat(`"x",`, 120) + `"y"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return
		}
		c, ok := readCompletion(bytes.TrimSpace(b))
		if len(c.Values) > maxCompletions || c.Total < 0 || ok != (c.Values != nil) {
			t.Errorf("%+v, %v", c, ok)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
	})
}

// FuzzReadingBody checks the requests: each is one line of valid JSON with the values that the caller gave.
func FuzzReadingBody(f *testing.F) {
	f.Add("p", "a", "v\n\"\\\u2028", true)
	f.Add("x:{y}", "\x00", "", false)
	f.Fuzz(func(t *testing.T, about, argument, value string, prompt bool) {
		if argumentsProblem(map[string]string{about: argument, argument: value}) != "" {
			return
		}
		r := messages.CompleteRequest{Argument: argument, Value: value, Context: map[string]string{argument: value, about: ""}}
		if r.URITemplate = about; prompt {
			r.URITemplate, r.Prompt = "", about
		}
		fields := appendCompletion(nil, r)
		filter := subscriptions.Filter{Tools: prompt, URIs: []string{about, value}}
		body := (&request{method: "m", fields: filter.AppendParams(append(fields, ','))}).appendTo(nil, 1, nil, nil)
		if bytes.ContainsAny(body, "\n\r") {
			t.Fatalf("a newline in %q", body)
		}
		var got struct {
			Params struct {
				Ref           struct{ Type, Name, URI string }
				Argument      struct{ Name, Value string }
				Context       struct{ Arguments map[string]string }
				Notifications struct {
					ToolsListChanged      bool
					ResourceSubscriptions []string
				}
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		p := got.Params
		if p.Ref.Name != r.Prompt || p.Ref.URI != r.URITemplate || p.Argument.Name != argument ||
			p.Argument.Value != value || !maps.Equal(p.Context.Arguments, r.Context) ||
			p.Notifications.ToolsListChanged != prompt || !slices.Equal(p.Notifications.ResourceSubscriptions, filter.URIs) {
			t.Errorf("sent as %s", body)
		}
	})
}
