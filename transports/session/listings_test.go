package session

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// FuzzOffers checks for each list that every definition ends up in exactly one of the two results, that the items
// keep the server's bytes and can be asked for, and that no key stands twice.
func FuzzOffers(f *testing.F) {
	f.Add([]byte(`{"resources":[{"uri":"a:","size":5,"annotations":{"priority":1,"audience":["user"]}},{"uri":"a:"},7],"ttlMs":5}`))
	f.Add([]byte(`{"resourceTemplates":[{"uriTemplate":"a:{b}","icons":[{"src":"https://x"}]},{}],"ttlMs":-1e999}`))
	f.Add([]byte(`{"prompts":[{"name":"p\ud800"},{"name":"p","arguments":[{"name":"a","required":true},{}]}],"cacheScope":"public"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !rawjson.IsObject(b) || !json.Valid(b) {
			return
		}
		checkListing(t, b, &resourceKind, func(r messages.Resource) (string, []byte) { return r.URI, r.Raw })
		checkListing(t, b, &templateKind, func(r messages.ResourceTemplate) (string, []byte) { return r.URITemplate, r.Raw })
		checkListing(t, b, &promptKind, func(p messages.Prompt) (string, []byte) { return p.Name, p.Raw })
	})
}

func checkListing[T any](t *testing.T, b []byte, k *listKind[T], fieldsOf func(T) (key string, raw []byte)) {
	now := time.Unix(1e9, 0)
	l := newPageCollector(k, listLimits{maxEntries: 100})
	if _, problem := l.addPage(b, now); problem != "" {
		return
	}
	if l.freshUntil.Before(now) || l.freshUntil.After(now.Add(maxFresh)) {
		t.Errorf("fresh until %v", l.freshUntil)
	}
	var page map[string]json.RawMessage
	var definitions []json.RawMessage
	if json.Unmarshal(b, &page) != nil || json.Unmarshal(page[k.member], &definitions) != nil {
		t.Fatal("read, and not readable")
	}
	if got := len(l.entries) + len(l.quarantined); got != len(definitions) {
		t.Errorf("%d %s became %d", len(definitions), k.plural, got)
	}
	keys := make(map[string]bool)
	for _, entry := range l.entries {
		key, raw := fieldsOf(entry)
		if keys[key] {
			t.Errorf("%q stands twice", key)
		}
		keys[key] = true
		if !slices.ContainsFunc(definitions, func(d json.RawMessage) bool { return bytes.Equal(d, raw) }) {
			t.Errorf("%q: Raw is not the server's", key)
		}
		var back string
		if appended := appendString(nil, key); json.Unmarshal(appended, &back) != nil || back != key || key == "" {
			t.Errorf("%q cannot be asked for: %s", key, appended)
		}
	}
	for _, q := range l.quarantined {
		if q.Name == "" || q.Reason == "" || q.Name != messages.Line(q.Name, 0) {
			t.Errorf("quarantined without saying so: %+q", q)
		}
	}
}

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
		filter := streamFilter{tools: prompt, uris: []string{about, value}}
		body := (&request{method: "m", fields: filter.appendParams(append(fields, ','))}).appendTo(nil, 1, nil, nil)
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
			p.Notifications.ToolsListChanged != prompt || !slices.Equal(p.Notifications.ResourceSubscriptions, filter.uris) {
			t.Errorf("sent as %s", body)
		}
	})
}
