package lists

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/definitions"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// FuzzToolList checks that every definition ends up in exactly one of the two lists, and that the tools can be used.
func FuzzToolList(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a"},7],"nextCursor":"x"}`))
	f.Add([]byte(`{"tools":[{"name":"a\ud800","inputSchema":{"type":["object"]},"annotations":{"title":5}}]}`))
	f.Add([]byte(`{"nextCursor":"","tools":[{"name":"\u0061","inputSchema":null,"inputSchema":[],"outputSchema":{}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !rawjson.IsObject(b) || !json.Valid(b) {
			return
		}
		l := NewCollector(&Tools, Limits{MaxEntries: 100})
		next, problem := l.addPage(b, time.Time{})
		if problem != "" {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if next != nil && !bytes.Equal(next, want["nextCursor"]) {
			t.Errorf("cursor is %s, want %s", next, want["nextCursor"])
		}
		var definitions []json.RawMessage
		if err := json.Unmarshal(want["tools"], &definitions); err != nil {
			t.Fatal(err)
		}
		if got := len(l.Entries) + len(l.Quarantined); got != len(definitions) {
			t.Errorf("%d definitions became %d", len(definitions), got)
		}
		var names []string
		for _, tool := range l.Entries {
			names = append(names, tool.Name)
			var schema map[string]any
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Errorf("tool %q: input schema: %v", tool.Name, err)
			}
			if !slices.ContainsFunc(definitions, func(d json.RawMessage) bool { return bytes.Equal(d, tool.Raw) }) {
				t.Errorf("tool %q: Raw is not the server's", tool.Name)
			}
			var name struct {
				Name string `json:"name"`
			}
			if appended := jsonrpc.AppendString(nil, tool.Name); json.Unmarshal([]byte(`{"name":`+string(appended)+`}`), &name) != nil ||
				name.Name != tool.Name {
				t.Errorf("tool %q cannot be called: %s", tool.Name, appended)
			}
		}
		slices.Sort(names)
		if len(slices.Compact(names)) != len(l.Entries) {
			t.Errorf("a name is offered twice: %q", names)
		}
		for _, q := range l.Quarantined {
			if q.Name == "" || q.Reason == "" || q.Name != messages.Line(q.Name, 0) {
				t.Errorf("quarantined without saying so: %+q", q)
			}
		}
	})
}

// TestListBounds checks the bounds that are too large for a story.
func TestListBounds(t *testing.T) {
	big := `{"name":"big","description":"` + strings.Repeat("x", definitions.MaxDefinition) + `"}`
	l := NewCollector(&Tools, Limits{MaxEntries: 10})
	if _, problem := l.addPage([]byte(`{"tools":[`+big+`,{"name":"small"}]}`), time.Time{}); problem != "" {
		t.Fatalf("the list is refused: %s", problem)
	}
	if len(l.Entries) != 1 || l.Entries[0].Name != "small" || len(l.Quarantined) != 1 ||
		l.Quarantined[0] != (messages.QuarantinedTool{Name: "big", Reason: "the definition is larger than 1 MiB"}) {
		t.Errorf("tools %d, quarantined %+v", len(l.Entries), l.Quarantined)
	}

	l = NewCollector(&Tools, Limits{MaxEntries: 10})
	cursor := `"` + strings.Repeat("c", maxCursor) + `"`
	if _, problem := l.addPage([]byte(`{"tools":[],"nextCursor":`+cursor+`}`), time.Time{}); problem == "" {
		t.Error("a cursor of 64 KiB is accepted")
	}

	l = NewCollector(&Tools, Limits{MaxEntries: 10})
	l.bytes = maxListBytes - 5
	if _, problem := l.addPage([]byte(`{"tools":[]}`), time.Time{}); problem != "is larger than 256 MiB" {
		t.Errorf("a list beyond the limit: %q", problem)
	}
}

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
		checkListing(t, b, &Resources, func(r messages.Resource) (string, []byte) { return r.URI, r.Raw })
		checkListing(t, b, &Templates, func(r messages.ResourceTemplate) (string, []byte) { return r.URITemplate, r.Raw })
		checkListing(t, b, &Prompts, func(p messages.Prompt) (string, []byte) { return p.Name, p.Raw })
	})
}

func checkListing[T any](t *testing.T, b []byte, k *Kind[T], fieldsOf func(T) (key string, raw []byte)) {
	now := time.Unix(1e9, 0)
	l := NewCollector(k, Limits{MaxEntries: 100})
	if _, problem := l.addPage(b, now); problem != "" {
		return
	}
	if l.freshUntil.Before(now) || l.freshUntil.After(now.Add(maxFresh)) {
		t.Errorf("fresh until %v", l.freshUntil)
	}
	var page map[string]json.RawMessage
	var definitions []json.RawMessage
	if json.Unmarshal(b, &page) != nil || json.Unmarshal(page[k.Member], &definitions) != nil {
		t.Fatal("read, and not readable")
	}
	if got := len(l.Entries) + len(l.Quarantined); got != len(definitions) {
		t.Errorf("%d %s became %d", len(definitions), k.Plural, got)
	}
	keys := make(map[string]bool)
	for _, entry := range l.Entries {
		key, raw := fieldsOf(entry)
		if keys[key] {
			t.Errorf("%q stands twice", key)
		}
		keys[key] = true
		if !slices.ContainsFunc(definitions, func(d json.RawMessage) bool { return bytes.Equal(d, raw) }) {
			t.Errorf("%q: Raw is not the server's", key)
		}
		var back string
		if appended := jsonrpc.AppendString(nil, key); json.Unmarshal(appended, &back) != nil || back != key || key == "" {
			t.Errorf("%q cannot be asked for: %s", key, appended)
		}
	}
	for _, q := range l.Quarantined {
		if q.Name == "" || q.Reason == "" || q.Name != messages.Line(q.Name, 0) {
			t.Errorf("quarantined without saying so: %+q", q)
		}
	}
}
