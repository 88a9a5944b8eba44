package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/reload/plan"
)

const (
	user    = "/home/u/mcp.json"
	project = "/p/.mcp.json"
	local   = "/p/.mcpvisor/mcp.local.json"
	managed = "/etc/managed-mcp.json"
)

var scopes = map[string]messages.Scope{user: messages.ScopeUser, project: messages.ScopeProject, local: messages.ScopeLocal,
	managed: messages.ScopeManaged}

// disk is a file system of configuration files: content by path. "!text" cannot be read, for the reason text.
type disk map[string]string

func (d disk) read() (files []config.File) {
	for _, path := range []string{managed, user, project, local} {
		text, there := d[path]
		if !there {
			continue
		}
		f := config.File{Path: path, Scope: scopes[path], Dir: "/p", Data: []byte(text)}
		if why, bad := strings.CutPrefix(text, "!"); bad {
			f.Data, f.Err = nil, why
		}
		files = append(files, f)
	}
	return files
}

// servers writes a file: "a=x b=y" are servers a and b with the commands x and y; "a=" is an entry that cannot be used, "a"
// one that is no entry of any kind.
func servers(words string) string {
	var entries []string
	for word := range strings.FieldsSeq(words) {
		name, command, entry := strings.Cut(word, "=")
		switch {
		case !entry:
			entries = append(entries, fmt.Sprintf("%q: 7", name))
		case command == "":
			entries = append(entries, fmt.Sprintf("%q: {}", name))
		default:
			entries = append(entries, fmt.Sprintf("%q: {\"command\": %q}", name, command))
		}
	}
	return `{"mcpServers": {` + strings.Join(entries, ", ") + "}}"
}

// shown is a set of servers in the notation of servers; an unusable one has a ! in the place of its command.
func shown(specs map[string]messages.Spec) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		word := name + "=" + specs[name].Command
		if specs[name].Invalid != "" || specs[name].Hold != "" {
			word = name + "=!"
		}
		if specs[name].Disabled {
			word += "(disabled)"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// changes are those lists that are not empty, without what is kept.
func changes(c config.Changes) string {
	var parts []string
	for _, l := range []struct {
		word  string
		names []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"replaced", c.Replaced}, {"adjusted", c.Adjusted}, {"moved", c.Moved}} {
		if len(l.names) > 0 {
			parts = append(parts, l.word+" "+strings.Join(l.names, ","))
		}
	}
	return strings.Join(parts, "; ")
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// after plays the clock until nothing is due any more, as the shell does.
func after(t *testing.T, b plan.Tracker, now time.Time, d disk, approve func(config.Set) config.Set) (plan.Tracker, []plan.Decision, time.Time) {
	t.Helper()
	var all []plan.Decision
	for range 20 {
		due, ok := b.Due()
		if !ok {
			return b, all, now
		}
		if due.After(now) {
			now = due
		}
		b, _ = b.Observe(now, d.read())
		if due, ok := b.Due(); ok && !due.After(now) {
			var decision plan.Decision
			b, decision = b.Decide(now, approve)
			all = append(all, decision)
		}
	}
	t.Fatal("it is due for ever")
	return b, nil, now
}

// TestWhatCountsOfAFile: each row is what is on the disk before and after, and what is in force when everything has settled.
func TestWhatCountsOfAFile(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after disk
		want          string // servers
		changes       string
		problem       string // what a problem says
		remark        string // a server that has one, and what it says
	}{
		{name: "nothing", before: disk{user: servers("a=x")}, after: disk{user: servers("a=x")}, want: "a=x"},
		{name: "other order, comments, spaces", before: disk{user: servers("a=x b=y")},
			after: disk{user: "// mine\n{\"mcpServers\":{\"b\" : {\"command\":\"y\",}, \"a\":{\"command\":\"x\"}} }"}, want: "a=x b=y"},
		{name: "added, removed, replaced", before: disk{user: servers("a=x b=y")}, after: disk{user: servers("b=z c=x")},
			want: "b=z c=x", changes: "added c; removed a; replaced b"},
		{name: "adjusted", before: disk{user: servers("a=x")},
			after: disk{user: `{"mcpServers": {"a": {"command": "x", "callTimeout": "5s", "deniedTools": ["y"]}}}`},
			want:  "a=x", changes: "adjusted a"},
		{name: "what a higher scope hid becomes visible", before: disk{user: servers("a=x"), local: servers("a=y")},
			after: disk{user: servers("a=x"), local: servers("")}, want: "a=x", changes: "replaced a"},
		{name: "the same becomes visible", before: disk{user: servers("a=x"), local: servers("a=x")},
			after: disk{user: servers("a=x")}, want: "a=x", changes: "replaced a"}, // that of the project began in it
		{name: "a file appears", before: disk{}, after: disk{user: servers("a=x")}, want: "a=x", changes: "added a"},
		{name: "a file goes", before: disk{user: servers("a=x"), project: servers("b=y")}, after: disk{user: servers("a=x")},
			want: "a=x", changes: "removed b"},
		{name: "truncated", before: disk{user: servers("a=x b=y")}, after: disk{user: servers("a=x b=y")[:20]}, want: "a=x b=y",
			problem: user + ":1:"},
		{name: "empty", before: disk{user: servers("a=x")}, after: disk{user: ""}, want: "a=x", problem: user},
		{name: "garbage", before: disk{user: servers("a=x")}, after: disk{user: "\x00\xff}{"}, want: "a=x", problem: user},
		{name: "a list", before: disk{user: servers("a=x")}, after: disk{user: "[]"}, want: "a=x", problem: "instead of an object"},
		{name: "unreadable", before: disk{user: servers("a=x")}, after: disk{user: "!it may not be read"}, want: "a=x",
			problem: "it may not be read"},
		{name: "valid and without servers", before: disk{user: servers("a=x")}, after: disk{user: "{}"}, changes: "removed a"},
		{name: "one file broken, another changed", before: disk{user: servers("a=x"), project: servers("b=y")},
			after: disk{user: "{", project: servers("b=z")}, want: "a=x b=z", changes: "replaced b", problem: user},
		{name: "broken while it appears", before: disk{project: servers("a=x")}, after: disk{project: servers("a=x"), local: "{"},
			want: "a=x", problem: local},
		{name: "a managed file appears broken", before: disk{user: servers("a=x")}, after: disk{user: servers("a=x"), managed: "{"},
			want: "a=x", problem: managed},
		{name: "a managed file appears", before: disk{user: servers("a=x b=y")},
			after: disk{user: servers("a=x b=y"), managed: servers("b=z")}, want: "b=z", changes: "removed a; replaced b"},
		{name: "an entry becomes unusable", before: disk{user: servers("a=x b=y")}, after: disk{user: servers("a= b=z")},
			want: "a=x b=z", changes: "replaced b", problem: `server "a"`, remark: "a it has neither command nor url"},
		{name: "an entry becomes something else", before: disk{user: servers("a=x")}, after: disk{user: servers("a")},
			want: "a=x", problem: `server "a"`, remark: "a it goes on as it was"},
		{name: "an unusable entry is taken away", before: disk{user: servers("a=x")}, after: disk{user: servers("")}, changes: "removed a"},
		{name: "an unset variable", before: disk{user: servers("a=x")}, after: disk{user: servers("a=${NOWHERE}")}, want: "a=x",
			problem: "NOWHERE", remark: `a variable "NOWHERE" is not set`},
		{name: "unusable from the beginning", before: disk{user: servers("a= b=y")}, after: disk{user: servers("a= b=z")},
			want: "a=! b=z", changes: "replaced b", problem: `server "a"`},
		{name: "new and unusable", before: disk{user: servers("b=y")}, after: disk{user: servers("a= b=y")}, want: "a=! b=y",
			changes: "added a", problem: `server "a"`},
		{name: "unusable and hiding one that runs", before: disk{user: servers("a=x")},
			after: disk{user: servers("a=x"), local: servers("a=")}, want: "a=x", problem: local, remark: "a it goes on as it was"},
		{name: "unusable, and the one that runs is nowhere any more", before: disk{user: servers("a=x")},
			after: disk{user: servers(""), local: servers("a=")}, want: "a=!", changes: "replaced a", problem: local},
		{name: "unusable and managed: nobody else's goes on", before: disk{user: servers("a=x")},
			after: disk{user: servers("a=x"), managed: servers("a=")}, want: "a=!", changes: "replaced a", problem: managed},
		{name: "unusable and disabled", before: disk{user: servers("a=x")},
			after: disk{user: `{"mcpServers": {"a": {"disabled": true}}}`}, want: "a=x(disabled)", changes: "adjusted a",
			remark: "a it goes on as it was"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := plan.Rules{Context: config.Context{Lookup: func(string) (string, bool) { return "", false }}}
			b := plan.New(rules, c.before.read(), nil)
			first := b.Last()
			if _, due := b.Due(); due {
				t.Fatal("something is due before anything has changed")
			}
			b, _ = b.Observe(start, c.after.read())
			b, _, _ = after(t, b, start, c.after, nil)
			last := b.Last()
			if got := shown(last.Specs); got != c.want {
				t.Errorf("in force are %q, want %q", got, c.want)
			}
			if got := changes(config.Compare(first.Specs, last.Specs)); got != c.changes {
				t.Errorf("changes: %q, want %q", got, c.changes)
			}
			var problems []string
			for _, p := range last.Problems {
				problems = append(problems, p.Error())
			}
			if all := strings.Join(problems, "\n"); (c.problem != "") != (all != "") && c.name != "unusable and disabled" ||
				!strings.Contains(all, c.problem) {
				t.Errorf("problems: %q, want %q", all, c.problem)
			}
			name, text, _ := strings.Cut(c.remark, " ")
			if c.remark == "" && len(last.Remarks) > 0 || !strings.Contains(last.Specs[name].Remark, text) ||
				last.Remarks[name] != last.Specs[name].Remark {
				t.Errorf("remarks: %q, want %q", last.Remarks, c.remark)
			}
			// It is the end of it, and the same again is no news.
			if second, news := b.Observe(start.Add(time.Hour), c.after.read()); news {
				t.Errorf("the same again is news: %v", second)
			}
		})
	}
}

// What is mended is applied, and the remark goes.
func TestAMendedEntryIsApplied(t *testing.T) {
	b := plan.New(plan.Rules{}, disk{user: servers("a=x")}.read(), nil)
	now := start
	for _, c := range []struct{ file, want, changes string }{
		{servers("a="), "a=x", ""}, {servers("a=y"), "a=y", "replaced a"}, {servers("a="), "a=y", ""}, {"{", "a=y", ""},
		{servers("a=y"), "a=y", ""},
	} {
		d := disk{user: c.file}
		was := b.Last()
		b, _ = b.Observe(now, d.read())
		b, _, now = after(t, b, now, d, nil)
		last := b.Last()
		if got := changes(config.Compare(was.Specs, last.Specs)); shown(last.Specs) != c.want || got != c.changes {
			t.Errorf("%s: %s, %s", c.file, shown(last.Specs), got)
		}
		if strings.HasPrefix(c.want, c.file) && len(last.Remarks)+len(last.Problems) > 0 {
			t.Errorf("%s: %v %v", c.file, last.Remarks, last.Problems)
		}
	}
	if last := b.Last(); len(last.Remarks)+len(last.Problems) > 0 || last.Specs["a"].Remark != "" {
		t.Errorf("after it was mended: %+v", last)
	}
}

// An approved server whose entry changes goes on as it was approved, until the change is.
func TestAChangedApprovedServerGoesOnUntilTheChangeIsApproved(t *testing.T) {
	approved := map[string]bool{"x": true}
	approve := func(set config.Set) config.Set {
		set.Specs = maps.Clone(set.Specs)
		for name, s := range set.Specs {
			if !approved[s.Command] {
				s.Hold = "changed since it was approved; run `mcpvisor approve " + name + "`"
				set.Specs[name] = s
			}
		}
		return set
	}
	b := plan.New(plan.Rules{}, disk{project: servers("a=x b=w")}.read(), approve)
	if got := b.Last(); shown(got.Specs) != "a=x b=!" || !slices.Equal(got.Held, []string{"b"}) {
		t.Fatalf("at the start: %s, held %v", shown(got.Specs), got.Held)
	}
	d := disk{project: servers("a=y b=w")}
	b, _ = b.Observe(start, d.read())
	b, _, now := after(t, b, start, d, approve)
	if got := b.Last(); shown(got.Specs) != "a=x b=!" || !strings.Contains(got.Remarks["a"], "mcpvisor approve a") {
		t.Errorf("%s, remarks %v", shown(got.Specs), got.Remarks)
	}
	approved["y"], approved["w"] = true, true
	_, decision := b.Decide(now, approve)
	if shown(decision.Specs) != "a=y b=w" || changes(decision.Changes) != "replaced a,b" || len(decision.Remarks) > 0 {
		t.Errorf("approved: %s, %s, %v", shown(decision.Specs), changes(decision.Changes), decision.Remarks)
	}
}

// The times of a burst: decided when it has been quiet for 100 ms, at the latest a second after its first change; what may be
// half-written, or on its way back, has a second.
func TestWhenItIsDecided(t *testing.T) {
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	type look struct {
		ms   int
		disk disk
	}
	a, b2, none := disk{user: servers("a=x")}, disk{user: servers("a=y")}, disk{}
	half := disk{user: servers("a=y")[:9]}
	for _, c := range []struct {
		name  string
		looks []look
		want  []string // "ms servers"
	}{
		{"one change", []look{{0, b2}}, []string{"100 a=y"}},
		{"touched only", []look{{0, a}, {50, a}}, nil},
		{"there and back", []look{{0, b2}, {50, a}}, []string{"150 a=x"}},
		{"a burst", []look{{0, b2}, {90, a}, {180, b2}, {270, a}, {360, b2}}, []string{"460 a=y"}},
		{"a storm", []look{{0, b2}, {90, a}, {180, b2}, {270, a}, {360, b2}, {450, a}, {540, b2}, {630, a}, {720, b2}, {810, a},
			{900, b2}, {990, a}, {1080, b2}}, []string{"1000 a=x", "1180 a=y"}},
		{"half-written, then whole", []look{{0, half}, {60, b2}}, []string{"160 a=y"}},
		{"half-written for long", []look{{0, half}}, []string{"100 a=x", "1000 a=x reported"}},
		{"removed and back", []look{{0, none}, {400, b2}}, []string{"100 a=x", "500 a=y"}},
		{"removed", []look{{0, none}}, []string{"100 a=x", "1000 "}},
		{"valid, then broken: what was valid last counts", []look{{0, b2}, {20, half}}, []string{"120 a=y", "1020 a=y reported"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := plan.New(plan.Rules{}, a.read(), nil)
			var got []string
			decide := func(until time.Time) {
				for range 100 {
					due, ok := b.Due()
					if !ok || due.After(until) {
						return
					}
					var d plan.Decision
					b, d = b.Decide(due, nil)
					text := fmt.Sprintf("%d %s", due.Sub(start).Milliseconds(), shown(d.Specs))
					if len(d.Problems) > 0 {
						text += " reported"
					}
					got = append(got, text)
				}
				t.Fatal("it is due for ever")
			}
			for _, l := range c.looks {
				decide(at(l.ms).Add(-1))
				b, _ = b.Observe(at(l.ms), l.disk.read())
			}
			decide(at(1 << 20))
			if !slices.Equal(got, c.want) {
				t.Errorf("decided %q, want %q", got, c.want)
			}
		})
	}
}

// While a file is missing for a moment the others keep their order: within a scope the later one wins.
func TestAMissingFileKeepsItsPlace(t *testing.T) {
	file := func(path, words string) config.File {
		return config.File{Path: path, Scope: messages.ScopeProject, Data: []byte(servers(words))}
	}
	one, two, three := file("/1", "a=one"), file("/2", "a=two b=two"), file("/3", "a=three c=three")
	b := plan.New(plan.Rules{}, []config.File{one, two, three}, nil)
	for _, reading := range [][]config.File{{two, three}, {three}, {one, three}, {one}, {}} {
		next, _ := b.Observe(start, reading)
		if _, d := next.Decide(start, nil); changes(d.Changes) != "" {
			t.Errorf("%d of three files are there for a moment: %s", len(reading), changes(d.Changes))
		}
	}
}

// A file that was named and is gone loses its servers as any other, and is reported for as long as it is gone.
func TestANamedFileThatIsGone(t *testing.T) {
	named := config.File{Path: "/n.json", Scope: messages.ScopeDynamic, Data: []byte(servers("a=x"))}
	gone := config.File{Path: "/n.json", Scope: messages.ScopeDynamic, Err: "there is no such file", Missing: true}
	b := plan.New(plan.Rules{}, []config.File{named}, nil)
	b, _ = b.Observe(start, []config.File{gone})
	b, d := b.Decide(start.Add(100*time.Millisecond), nil)
	if shown(d.Specs) != "a=x" || len(d.Problems) > 0 {
		t.Errorf("at once: %s %v", shown(d.Specs), d.Problems)
	}
	b, d = b.Decide(start.Add(time.Second), nil)
	if shown(d.Specs) != "" || len(d.Problems) != 1 {
		t.Errorf("after a second: %s %v", shown(d.Specs), d.Problems)
	}
	b, _ = b.Observe(start.Add(time.Minute), []config.File{named})
	_, d = b.Decide(start.Add(2*time.Minute), nil)
	if shown(d.Specs) != "a=x" || len(d.Problems) > 0 {
		t.Errorf("when it is back: %s %v", shown(d.Specs), d.Problems)
	}
}

// TestStorm rewrites files at random, half of the contents broken in one way or another. Whatever the order: what is in force
// in the end is what a start would make of the last valid content that was seen of each file; what did not change was never
// touched; and no server that could run was ever made one that cannot.
func TestStorm(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		pick := func(words ...string) string { return words[r.IntN(len(words))] }
		content := func() (text string, valid bool) {
			text = servers("steady=same " + pick("a=x", "a=y", "a=x b=x", "b=y", "c=z a=x"))
			switch r.IntN(4) {
			case 0:
				return text[:r.IntN(len(text))], false
			case 1:
				return pick("\x00garbage", "[]", "", `{"mcpServers": {"a": {"command": }}}`, "!locked"), false
			}
			return text, true
		}
		d, valid := disk{}, disk{}
		for _, path := range []string{user, project, local} {
			d[path] = servers("steady=same a=x")
			valid[path] = d[path]
		}
		b := plan.New(plan.Rules{}, d.read(), nil)
		now := start
		judge := func(decision plan.Decision) error {
			if slices.Contains(slices.Concat(decision.Added, decision.Removed, decision.Replaced, decision.Adjusted), "steady") {
				return errors.New("a server that never changed was touched: " + changes(decision.Changes))
			}
			for name, s := range decision.Specs {
				if s.Invalid != "" {
					return fmt.Errorf("%s cannot be used: %s", name, s.Invalid)
				}
			}
			return nil
		}
		var failed error
		for range 100 {
			now = now.Add(time.Duration(r.IntN(200)) * time.Millisecond)
			for { // the clock has gone on
				due, ok := b.Due()
				if !ok || due.After(now) {
					break
				}
				var decision plan.Decision
				b, decision = b.Decide(due, nil)
				failed = errors.Join(failed, judge(decision))
			}
			path := pick(user, project, local)
			text, good := content()
			d[path] = text
			if good {
				valid[path] = text
			}
			b, _ = b.Observe(now, d.read())
		}
		b, all, _ := after(t, b, now, d, nil)
		for _, decision := range all {
			failed = errors.Join(failed, judge(decision))
		}
		want := plan.New(plan.Rules{}, valid.read(), nil).Last()
		if got := b.Last(); failed != nil || shown(got.Specs) != shown(want.Specs) || !config.Compare(got.Specs, want.Specs).None() {
			t.Fatalf("seed %d: in force %q, want %q; %v", seed, shown(got.Specs), shown(want.Specs), failed)
		}
	}
}

// FuzzSee: any bytes, in any order, never panic, never leave something due for ever, and never touch another file's server.
func FuzzSee(f *testing.F) {
	f.Add([]byte(servers("a=x")), []byte("{"), uint16(50))
	f.Add([]byte(""), []byte(servers("steady=other a")), uint16(0))
	f.Fuzz(func(t *testing.T, one, two []byte, gap uint16) {
		d := disk{user: servers("steady=same")}
		b := plan.New(plan.Rules{}, d.read(), nil)
		now := start
		for _, data := range [][]byte{one, two, one} {
			d[project] = string(data)
			b, _ = b.Observe(now, d.read())
			now = now.Add(time.Duration(gap) * time.Millisecond)
		}
		b, _, _ = after(t, b, now, d, nil)
		if s, ok := b.Last().Specs["steady"]; len(b.Last().Problems) == 0 && !ok {
			t.Errorf("the server of another file is gone: %+v", s)
		}
	})
}

// TestWhatNobodyAppliesIsNamed: "audit" and "samplingCommand" count when the program is started, and a change of them is said as
// long as it is there; of "registry" nothing is to be applied.
func TestWhatNobodyAppliesIsNamed(t *testing.T) {
	d := disk{user: `{"mcpServers": {}, "samplingCommand": "a"}`}
	now := time.Unix(0, 0)
	book := plan.New(plan.Rules{}, d.read(), nil)
	before := book.Last()
	for _, c := range []struct {
		text, want string
	}{
		{`{"mcpServers": {}, "samplingCommand": "a", "registry": "https://r.example"}`, "[]"},
		{`{"mcpServers": {}, "samplingCommand": "b"}`, "[samplingCommand]"},
		{`{"mcpServers": {}, "audit": false}`, "[audit samplingCommand]"},
		{`{"mcpServers": {}, "audit": false, "samplingCommand": "a"}`, "[audit]"},
		{`{"mcpServers": {}, "samplingCommand": "a"}`, "[]"},
	} {
		d[user], now = c.text, now.Add(time.Hour)
		book, _ = book.Observe(now, d.read())
		var decision plan.Decision
		book, decision = book.Decide(now, nil)
		if got := fmt.Sprint(decision.Restart); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
		if len(decision.Restart) > 0 && decision.Quiet(before) {
			t.Errorf("%s: nobody is told", c.text)
		}
	}
}
