package messages_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func ExampleNaming_Tool() {
	var n messages.Naming
	fmt.Println(n.Tool("github", "create_issue"))
	fmt.Println(n.Tool("my server", "run"))
	fmt.Println(n.Tool("a__b", "c"))
	fmt.Println(n.Tool("a_", "b"))
	fmt.Println(n.Tool("github", strings.Repeat("very_long_", 6)))
	// Output:
	// mcp__github__create_issue
	// mcp__my_server__run_w834xcl2v5
	// mcp__a__b__c_6kh92l2ms6
	// mcp__a___b_7gv1kts0rp
	// mcp__github__very_long_very_long_very_long_very_long__lq4g5995tr
}

func ExampleParseDisplayName() {
	known := func(server string) bool { return server == "tenant:42" }
	server, tool, ok := messages.ParseDisplayName("tenant:42:search", known)
	fmt.Println(server, tool, ok)
	_, _, ok = messages.ParseDisplayName("search", known)
	fmt.Println(ok)
	// Output:
	// tenant:42 search true
	// false
}

func TestToolNames(t *testing.T) {
	seeds.Shows(t, "004.fr7.mcp-name-style", "004.e.unit")
	double, single := messages.Naming{}, messages.Naming{Style: messages.StyleSingle}
	for _, c := range []struct {
		naming       messages.Naming
		server, tool string
		want         string // a final # stands for the hash
	}{
		{double, "github", "create_issue", "mcp__github__create_issue"},
		{double, "a", "_b", "mcp__a___b"},
		// the pair that mcp__a___b means when it is split at the first __
		{double, "a_", "b", "mcp__a___b_#"},                     // the pair that would give the same
		{double, "_a", "b", "mcp___a__b"},                       // begins with an underscore: still only one reading
		{double, "a__b", "c", "mcp__a__b__c_#"},                 //
		{double, "a", "b__c", "mcp__a__b__c"},                   //
		{double, "_", "a", "mcp_____a_#"},                       //
		{double, "a.b", "c", "mcp__a_b__c_#"},                   // sanitised
		{double, "a", "b/c", "mcp__a__b_c_#"},                   //
		{double, "a", "ü", "mcp__a____#"},                       // one underscore for a character of two bytes
		{double, "", "", "mcp_____#"},                           //
		{double, "a", "", "mcp__a___#"},                         //
		{double, "a", "x_0123456789", "mcp__a__x_0123456789_#"}, // looks hashed
		{double, "a", "0123456789", "mcp__a__0123456789_#"},     // looks hashed together with the separator
		{double, "a", "create_repository", "mcp__a__create_repository"},
		{single, "github", "create_issue", "mcp_github_create_issue"},
		{single, "a_b", "c", "mcp_a_b_c_#"},
		{single, "a", "b_c", "mcp_a_b_c"},
		{messages.Naming{Limit: 32}, "a", strings.Repeat("t", 24), "mcp__a__" + strings.Repeat("t", 24)},
		{messages.Naming{Limit: 32}, "a", strings.Repeat("t", 25), "mcp__a__" + strings.Repeat("t", 13) + "_#"},
		{messages.Naming{Limit: 32}, strings.Repeat("s", 30), strings.Repeat("t", 25), "mcp__sssssss__ttttttt_#"},
		{messages.Naming{Limit: 32}, strings.Repeat("s", 30), "tt", "mcp__ssssssssssss__tt_#"},
		{messages.Naming{Limit: 1}, "a", strings.Repeat("t", 99), "mcp__a__" + strings.Repeat("t", 13) + "_#"},
		{messages.Naming{Limit: 999}, "a", strings.Repeat("t", 120), "mcp__a__" + strings.Repeat("t", 120)},
	} {
		got := c.naming.Tool(c.server, c.tool)
		if want, hashed := strings.CutSuffix(c.want, "#"); hashed {
			if len(got) != len(want)+10 || !strings.HasPrefix(got, want) {
				t.Errorf("Tool(%q, %q) = %s, want %s and a hash", c.server, c.tool, got, want)
			}
		} else if got != c.want {
			t.Errorf("Tool(%q, %q) = %s, want %s", c.server, c.tool, got, c.want)
		}
	}
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// TestNamesNeverMeet draws pairs from a small alphabet of the characters that matter, so that names that could meet are
// drawn often, and checks every two of a walk against each other.
func TestNamesNeverMeet(t *testing.T) {
	seeds.Shows(t, "004.fr7.ac-no-conflicts")
	part := rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune("ab_.:-é")), 0, 6, -1),
		rapid.StringOfN(rapid.RuneFrom([]rune("a_0")), 9, 60, -1),
		rapid.Just("x_0123456789"), rapid.Just("0123456789"), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		n := messages.Naming{
			Style: rapid.SampledFrom([]messages.NameStyle{"", messages.StyleSingle}).Draw(t, "style"),
			Limit: rapid.SampledFrom([]int{0, 32, 40, 128}).Draw(t, "limit"),
		}
		limit := n.Limit
		if limit == 0 {
			limit = 64
		}
		seen := map[string][2]string{}
		add := func(server, tool string) {
			name := n.Tool(server, tool)
			pair := [2]string{server, tool}
			if !nameForm.MatchString(name) || len(name) > limit {
				t.Fatalf("%q of %q has a wrong form", name, pair)
			}
			if other, ok := seen[name]; ok && other != pair {
				t.Fatalf("%q and %q are both %s", pair, other, name)
			}
			seen[name] = pair
			if s, tl, ok := n.Split(name); ok && (s != server || tl != tool) {
				t.Fatalf("%s of %q splits into %q, %q", name, pair, s, tl)
			}
		}
		for range 20 {
			server, tool := part.Draw(t, "server"), part.Draw(t, "tool")
			add(server, tool)
			// The pairs that other readings of the name give: every place where a separator could stand, and the hashed
			// name taken for a true one.
			for _, name := range []string{n.Tool(server, tool), "mcp__" + server + "__" + tool} {
				rest := strings.TrimLeft(strings.TrimPrefix(name, "mcp"), "_")
				for i := range rest {
					if rest[i] == '_' {
						add(rest[:i], rest[i+1:])
						add(rest[:i], strings.TrimPrefix(rest[i+1:], "_"))
					}
				}
			}
		}
	})
}

func FuzzToolNames(f *testing.F) {
	f.Add("a", "_b", "a_", "b", 64)
	f.Add("a__b", "c", "a", "b__c", 64)
	f.Add("a.b", "x", "a_b", "x", 32)
	f.Add("a\xffb", "x", "a\xfeb", "x", 128)
	f.Add("ab", "c.", "a", "bc.", 0)
	f.Fuzz(func(t *testing.T, s1, t1, s2, t2 string, limit int) {
		for _, style := range []messages.NameStyle{messages.StyleDouble, messages.StyleSingle} {
			n := messages.Naming{Style: style, Limit: limit}
			bound := min(max(limit, messages.MinNameLimit), messages.MaxNameLimit)
			if limit == 0 {
				bound = messages.DefaultNameLimit
			}
			a, b := n.Tool(s1, t1), n.Tool(s2, t2)
			for _, name := range []string{a, b} {
				if !nameForm.MatchString(name) || len(name) > bound {
					t.Fatalf("%q has a wrong form", name)
				}
			}
			if (a == b) != (s1 == s2 && t1 == t2) {
				t.Fatalf("(%q, %q) is %s and (%q, %q) is %s", s1, t1, a, s2, t2, b)
			}
			if !n.MayBeOf(a, s1) || !n.MayBeOf(b, s2) {
				t.Fatalf("%s is not seen as of %q, or %s as of %q", a, s1, b, s2)
			}
			if s, tl, ok := n.Split(a); ok && (s != s1 || tl != t1) {
				t.Fatalf("%s of (%q, %q) splits into (%q, %q)", a, s1, t1, s, tl)
			}
		}
	})
}

func TestNamingValidate(t *testing.T) {
	for _, n := range []messages.Naming{{}, {Style: messages.StyleSingle, Limit: 128}, {Limit: 32}} {
		if err := n.Validate(); err != nil {
			t.Errorf("%+v: %v", n, err)
		}
	}
	for _, n := range []messages.Naming{{Style: "x"}, {Limit: 31}, {Limit: 129}, {Limit: -1}} {
		if n.Validate() == nil {
			t.Errorf("%+v passes", n)
		}
	}
}

func TestSplit(t *testing.T) {
	n := messages.Naming{}
	for name, want := range map[string][2]string{
		"mcp__github__create_issue": {"github", "create_issue"},
		"mcp__a___b":                {"a", "_b"},
		"mcp__a__b__c":              {"a", "b__c"},
		"mcp__a.b__c":               {},
		"mcp__a__":                  {},
		"mcp____b":                  {},
		"github:create_issue":       {},
		n.Tool("a.b", "c"):          {},
		n.Tool("a__b", "c"):         {},
		"mcp__a__x_0123456789":      {},
	} {
		server, tool, ok := n.Split(name)
		if got := [2]string{server, tool}; got != want || ok != (want[0] != "") {
			t.Errorf("Split(%q) = %q, %v; want %q", name, got, ok, want)
		}
	}
}

// A name leads to few servers: to one, unless what is visible of two is the same.
func TestMayBeOf(t *testing.T) {
	n := messages.Naming{}
	long := strings.Repeat("l", 60)
	for _, c := range []struct {
		name    string
		servers []string
	}{
		{"mcp__github__create_issue", []string{"github"}},
		{"mcp__a___b", []string{"a"}},
		{n.Tool("a.b", "c"), []string{"a.b", "a_b"}},
		{n.Tool("a__b", "c"), []string{"a", "a__b"}}, // a could have a tool b__c with a hash
		{n.Tool(long, "c"), []string{long, long + "m"}},
		{n.Tool(long, long), []string{long, long + "m"}},
		{"mcp__github", nil},
		{"github", nil},
	} {
		for _, server := range []string{"github", "a", "a.b", "a_b", "a__b", "b", "", long, long + "m", long[:10], "git"} {
			if got, want := n.MayBeOf(c.name, server), slices.Contains(c.servers, server); got != want {
				t.Errorf("MayBeOf(%q, %q) = %v", c.name, server, got)
			}
		}
	}
}

func TestParseDisplayName(t *testing.T) {
	seeds.Shows(t, "004.fr7.display")
	known := func(server string) bool { return server == "a" || server == "a:b" }
	for _, c := range []struct {
		in, server, tool string
		known            func(string) bool
	}{
		{"a:t", "a", "t", known},
		{"a:b:t", "a:b", "t", known}, // the longest known id wins
		{"a:b", "a", "b", known},     // a server called a:b is known too, and then no tool would be left
		{"a:t:u", "a", "t:u", known},
		{"x:t", "", "", known},
		{"x:t:u", "x", "t:u", nil},
		{":t", "", "", nil},
		{"x:", "", "", nil},
		{"x", "", "", nil},
		{"", "", "", nil},
	} {
		server, tool, ok := messages.ParseDisplayName(c.in, c.known)
		if server != c.server || tool != c.tool || ok != (c.server != "") {
			t.Errorf("%q: %q, %q, %v", c.in, server, tool, ok)
		}
	}
	if got := messages.DisplayName("a\x1b[31m", "t\nu"); got != "a\ufffd[31m:t u" {
		t.Errorf("DisplayName gives %q", got)
	}
}

func BenchmarkNamingTool(b *testing.B) {
	var n messages.Naming
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			n.Tool("github", "create_issue")
		}
	})
	b.Run("hashed", func(b *testing.B) {
		for b.Loop() {
			n.Tool("github.com", "create_issue")
		}
	})
}
