package access

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// set reads rules as a table writes them: "deny mcp__a | allow b:*".
func set(t *testing.T, text string) (s Set) {
	t.Helper()
	for word := range strings.SplitSeq(text, "|") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		verdict, rule, _ := strings.Cut(word, " ")
		if verdict == "default" {
			s.Default = Verdict(rule)
			continue
		}
		r, err := Parse(Verdict(verdict), rule)
		if err != nil {
			t.Fatal(err)
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

func hints(text string) *messages.Annotations {
	a, yes, no := &messages.Annotations{}, true, false
	switch text {
	case "readOnly":
		a.ReadOnly = &yes
	case "destructive":
		a.Destructive = &yes
	case "harmless":
		a.Destructive = &no
	case "both":
		a.ReadOnly, a.Destructive = &yes, &yes
	default:
		return nil
	}
	return a
}

// TestPrecedence is the precedence of the package comment, line by line.
func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name, managed, own string
		server, tool, args string
		trusted            bool
		hints              string
		want               Verdict
		rule               string
	}{
		{name: "nothing is said", server: "github", tool: "x", want: Allow},
		{name: "a server", own: "deny mcp__github", server: "github", tool: "x", want: Deny, rule: "mcp__github"},
		{name: "a server with a star", own: "deny mcp__github__*", server: "github", tool: "x", want: Deny},
		{name: "a longer server is another", own: "deny mcp__github", server: "github2", tool: "x", want: Allow},
		{name: "a tool", own: "deny mcp__github__x", server: "github", tool: "x", want: Deny},
		{name: "another tool", own: "deny mcp__github__x", server: "github", tool: "xy", want: Allow},
		{name: "as people write it", own: "deny github:x", server: "github", tool: "x", want: Deny},
		{name: "some tools", own: "deny github:delete_*", server: "github", tool: "delete_repo", want: Deny},
		{name: "a star in the middle", own: "deny mcp__github__*_repo", server: "github", tool: "delete_repo", want: Deny},
		{name: "a deny of every server", own: "deny mcp__*", server: "github", tool: "x", want: Deny},
		{name: "a deny of servers that begin so", own: "deny mcp__git*", server: "gitlab", tool: "x", want: Deny},
		{name: "an ask of a tool everywhere", own: "ask *:delete_*", server: "any", tool: "delete_it", want: Ask},
		{name: "in the long form", own: "ask mcp__*__delete_*", server: "any", tool: "delete_it", want: Ask},

		{name: "deny beats ask", own: "ask mcp__a | deny mcp__a", server: "a", tool: "x", want: Deny},
		{name: "ask beats allow", own: "allow mcp__a | ask mcp__a", server: "a", tool: "x", want: Ask},
		{name: "deny beats allow", own: "allow a:x | deny mcp__a", server: "a", tool: "x", want: Deny},
		{name: "more specific does not beat deny", own: "deny mcp__* | allow mcp__a__x", server: "a", tool: "x", want: Deny},
		{name: "more specific does not beat ask", own: "allow mcp__a__x | ask mcp__*", server: "a", tool: "x", want: Ask},
		{name: "a later one does not beat an earlier one", own: "deny a:x | allow a:x", server: "a", tool: "x", want: Deny},
		{name: "allow beats the default", own: "default deny | allow a:x", server: "a", tool: "x", want: Allow},
		{name: "the default for the rest", own: "default deny | allow a:x", server: "a", tool: "y", want: Deny},
		{name: "the default asks", own: "default ask", server: "a", tool: "y", want: Ask},

		{name: "a managed allow beats a deny", managed: "allow a:x", own: "deny mcp__*", server: "a", tool: "x", want: Allow},
		{name: "a managed ask beats a deny", managed: "ask a:x", own: "deny a:x", server: "a", tool: "x", want: Ask},
		{name: "a managed deny beats an allow", managed: "deny mcp__a", own: "allow a:x", server: "a", tool: "x", want: Deny},
		{name: "inside of the managed ones deny wins", managed: "allow a:x | deny mcp__a", server: "a", tool: "x", want: Deny},
		{name: "what no managed rule is about is the others'", managed: "deny mcp__b", own: "ask mcp__a", server: "a", tool: "x", want: Ask},
		{name: "a managed default is not undercut", managed: "default deny", own: "allow a:x", server: "a", tool: "x", want: Deny},
		{name: "nor is an asking one", managed: "default ask", own: "allow a:x", server: "a", tool: "x", want: Ask},
		{name: "but it can be made stricter", managed: "default ask", own: "deny a:x", server: "a", tool: "x", want: Deny},
		{name: "a managed allow is more than its default", managed: "default deny | allow a:x", server: "a", tool: "x", want: Allow},
		{name: "a managed default of allow binds nobody", managed: "default allow", own: "default deny", server: "a", tool: "x", want: Deny},
		{name: "a condition that is not met leaves the rest", managed: "deny a:x(p:1)", own: "ask a:x", args: `{"p":2}`,
			server: "a", tool: "x", want: Ask},
		{name: "a managed condition that is met", managed: "deny a:x(p:1)", own: "allow a:x", args: `{"p":1}`,
			server: "a", tool: "x", want: Deny},

		{name: "annotations of the untrusted are nothing", own: "default ask", server: "a", tool: "x", hints: "readOnly", want: Ask},
		{name: "a trusted server's read-only tool", own: "default ask", server: "a", tool: "x", trusted: true, hints: "readOnly", want: Allow},
		{name: "a trusted server's destructive tool", own: "default allow", server: "a", tool: "x", trusted: true, hints: "destructive", want: Ask},
		{name: "both at once", own: "default allow", server: "a", tool: "x", trusted: true, hints: "both", want: Ask},
		{name: "not destructive is not read-only", own: "default ask", server: "a", tool: "x", trusted: true, hints: "harmless", want: Ask},
		{name: "a trusted server that says nothing", own: "default ask", server: "a", tool: "x", trusted: true, want: Ask},
		{name: "destructive does not soften a deny", own: "default deny", server: "a", tool: "x", trusted: true, hints: "destructive", want: Deny},
		{name: "without a default nobody wants to know", server: "a", tool: "x", trusted: true, hints: "destructive", want: Allow},
		{name: "a rule is more than an annotation", own: "default ask | deny a:x", server: "a", tool: "x", trusted: true, hints: "readOnly", want: Deny},
		{name: "allow is more than destructive", own: "default ask | allow a:x", server: "a", tool: "x", trusted: true, hints: "destructive", want: Allow},
		{name: "a managed default is more than read-only", managed: "default ask", server: "a", tool: "x", trusted: true, hints: "readOnly", want: Ask},
	} {
		r := Rules{Managed: set(t, c.managed), Own: set(t, c.own)}
		q := Request{Server: c.server, Tool: c.tool, Args: json.RawMessage(c.args), Trusted: c.trusted, Annotations: hints(c.hints)}
		d := Decide(r, q)
		if d.Verdict != c.want || c.rule != "" && d.Rule != c.rule {
			t.Errorf("%s: %+v, want %s by %q", c.name, d, c.want, c.rule)
		}
		if d.Why == "" || d.ByRule != (d.Rule != "") {
			t.Errorf("%s: %+v does not say why", c.name, d)
		}
		j := Compile(r).Tool(c.server, c.tool, "")
		if _, hopeless := j.AlwaysDenied(c.trusted, hints(c.hints)); hopeless && d.Verdict != Deny {
			t.Errorf("%s: hopeless, and still %s", c.name, d.Verdict)
		}
		if fixed, ok := j.Fixed(); ok && fixed != d {
			t.Errorf("%s: by name %+v, by call %+v", c.name, fixed, d)
		}
	}
}

// TestNamesThatTwoCanRead: a name of a tool is chosen by its server. A deny matches every reading, an allow only the one
// that the naming gives.
func TestNamesThatTwoCanRead(t *testing.T) {
	hashed := messages.Naming{}.Tool("my server", "run")
	for _, c := range []struct {
		rule, server, tool string
		deny, allow        bool
	}{
		{"mcp__a__b__c", "a", "b__c", true, true},
		{"mcp__a__b__c", "a__b", "c", true, false},
		{"mcp__a__b", "a__b", "c", true, false},
		{"a__b:c", "a__b", "c", true, true},
		{"a__b:c", "a", "b__c", false, false},
		{"mcp__my_server__run", "my server", "run", true, false},
		{"mcp__my_server", "my server", "run", true, false},
		{hashed, "my server", "run", true, true},
		{hashed, "my_server", strings.TrimPrefix(hashed, "mcp__my_server__"), true, false},
		{"my server:run", "my server", "run", true, true},
		{"plugin:x:files:read", "plugin:x:files", "read", true, true},
		{"plugin:x:files:read", "plugin", "x:files:read", true, false},
		{"plugin:x:*", "plugin:x", "read", true, true},
		{"mcp__GitHub", "github", "x", false, false},
	} {
		for verdict, want := range map[Verdict]bool{Deny: c.deny, Allow: c.allow} {
			r := MustParse(verdict, c.rule)
			if got := r.name.matchesTool(c.server, c.tool, offeredAs(c.server, c.tool)); got != want {
				t.Errorf("%s %s is about server %q, tool %q: %v, want %v", verdict, c.rule, c.server, c.tool, got, want)
			}
		}
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		rule, args  string
		deny, allow bool
	}{
		{"fs:write(path:/tmp/*)", `{"path":"/tmp/x"}`, true, true},
		{"fs:write(path:/tmp/*)", `{"path":"/etc/x"}`, false, false},
		{"fs:write(path:/tmp/*)", `{}`, false, false},
		{"fs:write(path:/tmp/*)", ``, false, false},
		{"fs:write(path:/tmp/*)", `null`, false, false},
		{"fs:write(path:/tmp/*)", `{"file":"/tmp/x"}`, false, false},
		{"fs:write(path:*)", `{"path":"/../x"}`, true, true},
		// The ways around.
		{"fs:write(path:/tmp/*)", `{"path":"/tmp/../etc/passwd"}`, true, false},
		{"fs:write(path:/etc/*)", `{"path":"/tmp/../etc/passwd"}`, true, false},
		{"fs:write(path:/etc/*)", `{"path":"//etc/passwd"}`, true, false},
		{"fs:write(path:/etc/*)", `{"path":"/tmp\\..\\..\\etc/passwd"}`, true, false},
		{"fs:write(path:secret)", `{"path":"./secret"}`, true, false},
		{"fs:write(path:/tmp/*)", `{"path":"/tmp/x","path":"/etc/passwd"}`, true, false},
		{"fs:write(path:/tmp/*)", `{"path":"/etc/passwd","Path":"/tmp/x"}`, true, false},
		{"fs:write(path:/tmp/*)", `{"Path":"/tmp/x"}`, true, false},
		{"fs:write(path:/tmp/*)", `{"path":"/tmp/x"} {"path":"/etc/x"}`, true, false},
		{"fs:write(path:/tmp/*)", `{"path":"/tmp/x"`, true, false},
		{"fs:write(path:/tmp/*)", `["/tmp/x"]`, true, false},
		{"fs:write(path:/tmp/*)", `{"path":"\u002ftmp/x"}`, true, true},
		// Lists and objects.
		{"fs:read(paths:/tmp/*)", `{"paths":["/tmp/a","/tmp/b"]}`, true, true},
		{"fs:read(paths:/tmp/*)", `{"paths":["/tmp/a","/etc/b"]}`, true, false},
		{"fs:read(paths:/tmp/*)", `{"paths":[]}`, false, false},
		{"fs:read(paths:/tmp/*)", `{"paths":[["/tmp/a"]]}`, true, false},
		{"fs:read(paths:/tmp/*)", `{"paths":{"one":"/tmp/a"}}`, true, false},
		// What is no text.
		{"db:query(force:true)", `{"force":true}`, true, true},
		{"db:query(force:true)", `{"force":"true"}`, true, true},
		{"db:query(limit:10)", `{"limit":10}`, true, true},
		{"db:query(limit:1*)", `{"limit":[100]}`, true, true},
		// A number is what it counts, however it is written, where that is the stricter reading.
		{"bank:echo(amount:1000)", `{"amount":1000}`, true, true},
		{"bank:echo(amount:1000)", `{"amount":1000.0}`, true, false},
		{"bank:echo(amount:1000)", `{"amount":1e3}`, true, false},
		{"bank:echo(amount:1000)", `{"amount":10E+2}`, true, false},
		{"bank:echo(amount:1000)", `{"amount":"1e3"}`, true, false},
		{"bank:echo(amount:1000)", `{"amount":[{"of":1000.00}]}`, true, false},
		{"bank:echo(amount:1e3)", `{"amount":1000}`, true, false},
		{"bank:echo(amount:1000*)", `{"amount":1e6}`, true, false},
		{"bank:echo(amount:0)", `{"amount":-0.0}`, true, false},
		{"bank:echo(amount:1000)", `{"amount":1001}`, false, false},
		{"bank:echo(amount:1000)", `{"amount":1e400}`, false, false},
		{"bank:echo(amount:1000)", `{"Amount":1e3,"amount":1}`, true, false},
		{"db:query(where:null)", `{"where":null}`, true, true},
		{"db:query(where:null)", `{"where":[null,false]}`, true, false},
		// Several, and signs that mean themselves.
		{"fs:move(from:/a/*,to:/b/*)", `{"from":"/a/1","to":"/b/1"}`, true, true},
		{"fs:move(from:/a/*, to:/b/*)", `{"from":"/a/1","to":"/c/1"}`, false, false},
		{`q:x(text:a\,b)`, `{"text":"a,b"}`, true, true},
		{`q:x(text:a\*b)`, `{"text":"a*b"}`, true, true},
		{`q:x(text:a\*b)`, `{"text":"axb"}`, false, false},
		{`q:x(text:f\(\)\\)`, `{"text":"f()\\"}`, true, true},
		{`q:x(text:http://*:80)`, `{"text":"http://h:80"}`, true, true},
		{"q:x(sql:*DROP*)", `{"sql":"x; DROP y"}`, true, true},
		{"q:x(sql:a*a)", `{"sql":"a"}`, false, false},
		{"q:x(sql:a*bc*c)", `{"sql":"a-bc"}`, false, false},
	} {
		for verdict, want := range map[Verdict]bool{Deny: c.deny, Allow: c.allow} {
			r := MustParse(verdict, c.rule)
			d := Decide(Rules{Own: Set{Rules: []Rule{r}, Default: Ask}}, Request{
				Server: r.name.server, Tool: r.name.tool, Args: json.RawMessage(c.args)})
			if got := d.Verdict == verdict; got != want {
				t.Errorf("%s %s with %s: %v, want %v (%s)", verdict, c.rule, c.args, got, want, d.Why)
			}
		}
	}
}

func TestARuleThatCannotBeReadDeniesEverything(t *testing.T) {
	at := Source{File: "/x/mcp.json", Line: 3, Col: 7, Scope: messages.ScopeUser}
	r := Rules{Own: Set{Rules: []Rule{MustParse(Allow, "a:x"), Unreadable("githb", at)}}}
	d := Decide(r, Request{Server: "a", Tool: "x"})
	want := "the rule githb cannot be read, and until it can everything is denied (/x/mcp.json:3:7, user)"
	if d.Verdict != Deny || d.Why != want || d.Source != at {
		t.Errorf("%+v", d)
	}
	if d := Compile(r).Server("a"); d.Verdict != Deny {
		t.Errorf("reading: %+v", d)
	}
}

func TestReadingIsKeptFromByADenyOfTheWholeServer(t *testing.T) {
	for _, c := range []struct {
		managed, own, server string
		want                 Verdict
	}{
		{"", "deny mcp__a", "a", Deny},
		{"", "deny mcp__a__*", "a", Deny},
		{"", "deny a:*", "a", Deny},
		{"", "deny mcp__*", "a", Deny},
		{"", "deny *", "a", Deny},
		{"", "deny mcp__a*", "ab", Deny},
		{"", "deny mcp__a__x", "a", Allow},
		{"", "deny a:*x", "a", Allow},
		{"", "deny a:*(p:1)", "a", Allow},
		{"", "deny mcp__*__delete", "a", Allow},
		{"", "ask mcp__a", "a", Allow},
		{"", "default deny", "a", Allow},
		{"allow mcp__a", "deny mcp__a", "a", Allow},
		{"deny mcp__a", "allow mcp__a", "a", Deny},
		{"deny mcp__b", "deny mcp__a", "a", Deny},
	} {
		m := Compile(Rules{Managed: set(t, c.managed), Own: set(t, c.own)})
		if d := m.Server(c.server); d.Verdict != c.want {
			t.Errorf("managed %q, own %q: %+v, want %s", c.managed, c.own, d, c.want)
		}
	}
}

func TestHopeless(t *testing.T) {
	for _, c := range []struct {
		managed, own string
		want         bool
	}{
		{"", "", false},
		{"", "deny a:x", true},
		{"", "deny a:x(p:1)", false},
		{"", "default deny", true},
		{"", "default deny | allow a:x(p:1)", false},
		{"", "default deny | deny a:x(p:1)", true},
		{"", "default ask", false},
		{"", "deny a:x | allow a:x", true},
		{"allow a:x(p:1)", "deny a:x", false},
		{"deny a:x(p:1)", "deny a:x", true},
		{"allow a:x", "deny a:x", false},
		{"default deny", "allow a:x", true},
		{"default deny | ask a:x(p:1)", "allow a:x", false},
	} {
		j := Compile(Rules{Managed: set(t, c.managed), Own: set(t, c.own)}).Tool("a", "x", "")
		if d, got := j.AlwaysDenied(false, nil); got != c.want || got && d.Why == "" {
			t.Errorf("managed %q, own %q: %v, want %v: %+v", c.managed, c.own, got, c.want, d)
		}
	}
}

func TestWhatANameDecidesAllocatesNothing(t *testing.T) {
	m := Compile(Rules{Own: set(t, "default ask | deny b:* | allow a:*")})
	for _, j := range []*Judgement{m.Tool("a", "x", ""), m.Tool("b", "x", ""), m.Tool("c", "x", "")} {
		q := Request{Args: json.RawMessage(`{"path":"/x"}`), Annotations: hints("readOnly"), Trusted: true}
		if n := testing.AllocsPerRun(100, func() { _ = j.Decide(q) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// TestExactMeansOneTool: what an answer "always" writes down allows this tool and no other.
func TestExactMeansOneTool(t *testing.T) {
	pairs := [][2]string{{"github", "x"}, {"a__b", "c"}, {"a", "b__c"}, {"my server", "run"}, {"my_server", "run"}, {"p:q", "t"},
		{"p", "q:t"}, {"s(1)", "t"}, {"s", "t*"}, {"s", "tt"}, {"mcp__x", "y"}, {" s", "t"}, {"s", "t)"}, {"s", "t\x1b"}}
	for _, pair := range pairs {
		r, err := Parse(Allow, Exact(pair[0], pair[1]))
		if err != nil {
			t.Errorf("%q: %v", pair, err)
			continue
		}
		for _, p := range pairs {
			if got := r.name.matchesTool(p[0], p[1], offeredAs(p[0], p[1])); got != (p == pair) {
				t.Errorf("%q for %q is about %q: %v", r.Text, pair, p, got)
			}
		}
	}
}
