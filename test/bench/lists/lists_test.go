package lists_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/bench/lists"
)

func TestMain(m *testing.M) {
	if lists.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func world(t testing.TB, c lists.Case) *lists.ServerSet {
	t.Helper()
	w, err := lists.NewServerSet(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// Every contender gets the whole list of every server, in one page and in several.
func TestEveryoneGetsTheList(t *testing.T) {
	for _, server := range []string{"stdio", "http", "sdk"} {
		for _, page := range []int{0, 5, 7} {
			c := lists.Case{Server: server, Tools: 25, Page: page}
			t.Run(strings.ReplaceAll(c.String(), " ", "_"), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := lists.Measure(ctx, c, world(t, c).Open, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, who := range lists.Contenders {
					if len(r.Connect[who]) != 1 || len(r.Repeats[who]) < 1 || lists.Median(r.Repeats[who]).Time <= 0 {
						t.Errorf("%s: %v, %v", who, r.Connect[who], r.Repeats[who])
					}
				}
			})
		}
	}
}

// What is listed is what servers of today list: JSON, of 1 to 2 KB for each tool.
func TestToolsAreRealistic(t *testing.T) {
	for _, i := range []int{0, 17, 4999} {
		text := lists.Definition(i)
		if !json.Valid([]byte(text)) || len(text) < 1000 || len(text) > 2500 {
			t.Errorf("%d bytes, valid %v: %s", len(text), json.Valid([]byte(text)), text)
		}
	}
}

// A list allocates in proportion to its tools, and no more for each than this: its strings, its entry, its name.
func TestAListAllocatesLittle(t *testing.T) {
	const tools = 2000
	c := lists.Case{Server: "stdio", Tools: tools}
	// Every client lists here, and a busy machine takes a minute for it: only a hang is given up.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r, err := lists.Measure(ctx, c, world(t, c).Open, 2)
	if err != nil {
		t.Fatal(err)
	}
	changed, unchanged := lists.Median(r.Repeats["mcpvisor"]), lists.Median(r.Repeats["unchanged"])
	t.Logf("%.1f allocations for each tool, %.1f of an unchanged list", changed.Allocs/tools, unchanged.Allocs/tools)
	if n := changed.Allocs / tools; n > 8 {
		t.Errorf("%.1f allocations for each tool", n)
	}
}

func BenchmarkList(b *testing.B) {
	for _, who := range []string{"mcpvisor", "unchanged", "floor"} {
		b.Run(who, func(b *testing.B) {
			c := lists.Case{Server: "stdio", Tools: 5000}
			client, err := world(b, c).Open(b.Context(), who)
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.List(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
