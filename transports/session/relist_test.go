package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/lists"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/memory"
)

// readList reads a page as ListTools does, after the list before.
func readList(t *testing.T, before *ToolList, tools ...string) *ToolList {
	t.Helper()
	l := lists.NewCollector(&lists.Tools, oneList)
	l.KeepsDefinitions = true
	before.reuseDefinitions(l)
	if e := l.FetchPages(t.Context(), onePage(`{"tools":[`+strings.Join(tools, ",")+`]}`)); e != nil {
		t.Fatal(e)
	}
	return before.nextList(l)
}

// onePage is the source of a list that has this page and no other.
type onePage []byte

func (p onePage) RequestPage(context.Context, string, []byte) ([]byte, *messages.Error) {
	return p, nil
}

var oneList = lists.Limits{Memory: new(memory.Account), MaxPages: 1, MaxEntries: 1000}

func aTool(name, description string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, name, description)
}

// TestAListShares: a tool that is listed again byte for byte shares the memory of the earlier one, with any tool
// inserted, changed or removed around it, and a new tool keeps no more than itself alive. An unchanged list shares
// everything.
func TestAListShares(t *testing.T) {
	a, b, c, d := aTool("a", "1"), aTool("b", "1"), aTool("c", "1"), aTool("d", "1")
	for what, now := range map[string][]string{
		"as it was":                   {a, b, c, d},
		"one is changed":              {a, aTool("b", "2"), c, d},
		"one is put in":               {a, aTool("new", "2"), b, c, d},
		"one is taken out":            {a, c, d},
		"the first is taken out":      {b, c, d},
		"one is put at the end":       {a, b, c, d, aTool("new", "2")},
		"one becomes unusable":        {a, `{"name":"b","inputSchema":5}`, c, d},
		"one is there twice":          {a, b, b, c, d},
		"another order":               {d, c, b, a},
		"none is left":                {},
		"one, and another, and so on": {aTool("a", "2"), b, aTool("c", "2"), d},
	} {
		before := readList(t, nil, a, b, c, d)
		got := readList(t, before, now...)
		alone := readList(t, nil, now...)
		if got.Hash != alone.Hash || len(got.Tools) != len(alone.Tools) || !slices.Equal(got.Quarantined, alone.Quarantined) {
			t.Errorf("%s: %v, read without the list before it is %v", what, got, alone)
			continue
		}
		if same := got.Hash == before.Hash; same != (what == "as it was" || what == "another order") {
			t.Errorf("%s: the hash is the same: %v", what, same)
		}
		if what == "as it was" && unsafe.SliceData(got.Tools) != unsafe.SliceData(before.Tools) {
			t.Errorf("%s: it is a copy", what)
		}
		for i, tool := range got.Tools {
			if string(tool.Raw) != string(alone.Tools[i].Raw) || tool.Description != alone.Tools[i].Description ||
				tool.Annotations == nil || string(tool.InputSchema) != string(alone.Tools[i].InputSchema) {
				t.Errorf("%s: tool %d is %+v", what, i, tool)
			}
			shared := slices.ContainsFunc(before.Tools, func(old messages.Tool) bool { return unsafe.SliceData(old.Raw) == unsafe.SliceData(tool.Raw) })
			if known := slices.ContainsFunc([]string{a, b, c, d}, func(s string) bool { return s == string(tool.Raw) }); shared != known &&
				what != "another order" {
				t.Errorf("%s: %s is shared: %v", what, tool.Name, shared)
			}
			if !shared && cap(tool.Raw) > 2*len(tool.Raw) {
				t.Errorf("%s: %s keeps %d bytes for its %d", what, tool.Name, cap(tool.Raw), len(tool.Raw))
			}
		}
	}
}

// An owner that replaces Tools by a part of the list does not change which definitions are reused.
func TestAFilteredListIsRecalledWhole(t *testing.T) {
	a, b := aTool("a", "1"), aTool("b", "1")
	before := readList(t, nil, a, b)
	shown := *before
	shown.Tools = shown.Tools[:1:1]
	got := readList(t, &shown, a, b)
	if len(got.Tools) != 2 || got.Hash != before.Hash || unsafe.SliceData(got.Tools) != unsafe.SliceData(before.Tools) {
		t.Errorf("%+v", got)
	}
}

// TestListAllocations checks the allocations for each tool of a list: its texts and its annotations, and none for a
// tool that was there before.
func TestListAllocations(t *testing.T) {
	const tools = 500
	var all []string
	for i := range tools {
		all = append(all, aTool(fmt.Sprint("tool", i), "a \"quoted\" text\nin two lines"))
	}
	page := lists.PageSource(onePage(`{"tools":[` + strings.Join(all, ",") + `]}`))
	first := readList(t, nil, all...)
	for what, c := range map[string]struct {
		before *ToolList
		most   float64
	}{"first": {nil, 4.2}, "again": {first, 0.1}} {
		n := testing.AllocsPerRun(10, func() {
			l := lists.NewCollector(&lists.Tools, oneList)
			l.KeepsDefinitions = true
			c.before.reuseDefinitions(l)
			_ = l.FetchPages(t.Context(), page)
			c.before.nextList(l)
		}) / tools
		if n > c.most {
			t.Errorf("%s: %.2f allocations for each tool, at most %g are allowed", what, n, c.most)
		}
	}
}
