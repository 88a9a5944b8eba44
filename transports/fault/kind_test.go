package fault

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestTheCatalogueIsSortedAndComplete(t *testing.T) {
	all := Kinds()
	for i, k := range all {
		if i > 0 && all[i-1].Name >= k.Name {
			t.Errorf("%s stands behind %s", k.Name, all[i-1].Name)
		}
		if got, ok := Lookup(k.Name); !ok || got.Name != k.Name {
			t.Errorf("%s is not found by its name", k.Name)
		}
		scenario := k.Where.Has(scenarios)
		if k.Does == "" || len(k.Reports) == 0 || k.Where == 0 || scenario != (len(k.Servers) > 0) || scenario != (len(k.Eras) > 0) {
			t.Errorf("%s lacks something: %+v", k.Name, k)
		}
		if k.Where&rules != rules && k.Why == "" {
			t.Errorf("%s does not say why a rule cannot do it everywhere", k.Name)
		}
		if k.InRule != "" && (k.InRule == k.Does || !k.Where.Has(rules)) {
			t.Errorf("%s says a second time what it does", k.Name)
		}
		for _, text := range []string{k.Does, k.InRule} {
			if strings.HasSuffix(text, ".") || text != "" && strings.ToLower(text[:1]) != text[:1] {
				t.Errorf("%s: %q is not half a sentence as the others are", k.Name, text)
			}
		}
	}
	if _, ok := Lookup("crash-"); ok {
		t.Error("a name that is none was found")
	}
}

// TestEachRowOfRulesHasAnEffect: a row that claims a location of rules has an effect, and an effect has such a row. That the
// servers of scenarios behave as their rows claim, package test/chaos/peer tests.
func TestEachRowOfRulesHasAnEffect(t *testing.T) {
	effects := allEffects()
	for _, k := range Kinds() {
		e, ok := effects[k.Name]
		if ok != k.Where.Has(rules) {
			t.Errorf("%s has an effect: %v, and can be done at %b", k.Name, ok, k.Where)
		}
		if ok && e.in == nil && e.out == nil && e.clock == nil && !e.byProxy {
			t.Errorf("the effect of %s does nothing", k.Name)
		}
		if e.byProxy && k.Where.Has(Program) {
			t.Errorf("%s is done by a proxy, and not inside of a program", k.Name)
		}
		delete(effects, k.Name)
	}
	if len(effects) > 0 {
		t.Errorf("there is no row for the effects %v", slices.Sorted(maps.Keys(effects)))
	}
}

// TestNamesStay: rules and scenarios that people have written stand on them. A new name need not be here until a release has it.
func TestNamesStay(t *testing.T) {
	want := strings.Fields(`crash crash-loop exit-after-list hang-start slow-start starved silent-discover die-on-discover noise
		stderr-flood huge-line endless-line half-line duplicate-response unknown-response late-response ignore-eof ignore-term
		grandchild missing-binary stop deaf exhausted hang-call ignore-cancel endless-progress cursor-loop empty-cursor
		list-changed list-storm change-during-list quiet-change duplicate-names long-names bad-schema bad-output tool-error
		die-mid-call answer-and-die modern-breach era-flip wrong-version latency big-result lose-session cut-stream half-open
		refuse reset black-hole throttle unauthorized rotate-token forbidden redirect silent-delete server-error slow
		wrong-content-type slow-drip truncate stale-session-400 rug-pull control-characters leak-canary sleep partition stuck-dial`)
	for _, name := range want {
		if _, ok := Lookup(name); !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

// otherwise is every row of the list of field reports, with what makes it happen where it is no fault of a server: a command of
// a scenario, or the reason why there is nothing to be done to a server.
var otherwise = map[string]string{
	"P1": "", "P2": "", "P3": "", "P4": "", "P5": "", "P6": "", "P7": "", "P8": "", "P11": "", "P12": "", "P13": "",
	"P14": "", "P15": "",
	"R1": "", "R2": "", "R3": "", "R4": "", "R5": "a server lists over pages (pages of a group), and I14 compares the union of them",
	"R6": "", "R7": "", "R8": "", "R9": "", "R10": "", "R11": "", "R12": "", "R13": "", "R15": "", "R16": "",
	"H1": "", "H3": "", "H4": "", "H5": "", "H6": "", "H7": "", "H8": "", "H9": "", "H10": "", "H11": "", "H12": "",
	"X1": "", "X2": "", "X3": "", "X4": "",
	"L1": "the commands disable, disconnect and remove, while a server connects",
	"L2": "the command respec, during the wait that crash-loop brings about",
	"L3": "the manager is closed at the end of a run; a run of no duration closes it while everything starts",
	"L5": "", "L6": "",
}

func TestEveryReportIsCovered(t *testing.T) {
	covered := map[string][]string{}
	for _, k := range Kinds() {
		for _, id := range k.Reports {
			covered[id] = append(covered[id], k.Name)
			if _, ok := otherwise[id]; !ok {
				t.Errorf("%s belongs to the report %s, which there is not", k.Name, id)
			}
		}
	}
	for id, other := range otherwise {
		if (len(covered[id]) > 0) == (other != "") {
			t.Errorf("the report %s is covered by the faults %v, and otherwise by %q: it should be one of the two", id, covered[id], other)
		}
	}
}

// TestDefaultsAreValid: at each location a default is a value that a person could write, and its parameter explains itself.
func TestDefaultsAreValid(t *testing.T) {
	for _, k := range Kinds() {
		for _, at := range []Location{0, Sim} {
			with := map[string]string{}
			for _, p := range k.ParamsAt(at) {
				with[p.Name] = p.Default
				if _, fix := p.read(at, p.Default); p.Does == "" || fix != "" || (p.Type == "word" || p.Type == "status") != (len(p.Words) > 0) {
					t.Errorf("%s: the parameter %s lacks something, or its default is wrong (%s): %+v", k.Name, p.Name, fix, p)
				}
			}
			if err := k.CheckParams(at, with); err != nil {
				t.Errorf("a default of %s: %v", k.Name, err)
			}
			if given, absent := k.With(at, with), k.With(at, nil); len(given) != len(with) || !reflect.DeepEqual(given, absent) {
				t.Errorf("%s: the defaults are %v, and written out %v", k.Name, absent, given)
			}
		}
		for _, p := range k.Params {
			if p.inRule != nil && (*p.inRule == p.Default || p.where&everywhere != everywhere) {
				t.Errorf("%s: %s has a default for rules that it does not need", k.Name, p.Name)
			}
		}
	}
}

func TestErrorsNameTheParameterAndWhatWasMeant(t *testing.T) {
	for _, c := range []struct{ fault, param, value, want string }{
		{"crash", "cod", "1", `crash has no parameter "cod"; did you mean "code"?`},
		{"crash", "zzzzzz", "1", `crash has no parameter "zzzzzz"; known are code, signal, midcall, down`},
		{"hang-start", "by", "1s", `hang-start has no parameter "by"; it has none`},
		{"rug-pull", "text", "x", `rug-pull has no parameter "text" in a scenario; known are tool`},
		{"crash", "down", "soon", `down=soon is no duration; write a number with its unit, such as 500ms or 2s`},
		{"crash", "down", "-1s", `down=-1s is no duration; write a number with its unit, such as 500ms or 2s`},
		{"crash", "down", "9000h", `down=9000h is no duration; write a number with its unit, such as 500ms or 2s`},
		{"crash", "code", "one", `code=one is no count; write a whole number from 0 to 10000000`},
		{"crash", "midcall", "maybe", `midcall=maybe is unknown; write yes or no`},
		{"crash", "signal", "HUP", `signal=HUP is unknown; write one of KILL, SEGV, ABRT, TERM`},
		{"noise", "rate", "0", `rate=0 is no rate; write a number per second, more than 0 and at most 100000`},
		{"noise", "rate", "NaN", `rate=NaN is no rate; write a number per second, more than 0 and at most 100000`},
		{"noise", "when", "befor", `when=befor is unknown; did you mean "before"?`},
		{"noise", "when", "midnight", `when=midnight is unknown; write one of always, before, during`},
		{"hang-call", "chance", "2", `chance=2 is no chance; write a probability from 0 to 1`},
		{"tool-error", "code", "x", `code=x is no code; write the code of an error, such as -32603`},
		{"latency", "jitter", "x", `jitter=x is no jitter; write a duration, such as 500ms, or a part from 0 to 1`},
		{"huge-line", "size", "2GiB", `size=2GiB is no size; write bytes, such as 4096, 64KiB or 17MiB, at most 1GiB`},
		{"server-error", "status", "520", `status=520 is no status; write one of 400, 404, 405, 406, 408, 409, 413, 415, 500, 501, 502, 503, 504`},
	} {
		k, ok := Lookup(c.fault)
		if !ok {
			t.Fatalf("no fault %q", c.fault)
		}
		var rule *RuleError
		if err := k.CheckParams(Sim, map[string]string{c.param: c.value}); !errors.As(err, &rule) || err.Error() != c.want {
			t.Errorf("%s %s=%s: %v, expected %s", c.fault, c.param, c.value, err, c.want)
		}
	}
	if near := Nearest("list-chnaged"); near != "list-changed" {
		t.Errorf("list-chnaged is taken for %q", near)
	}
	if near := Nearest("earthquake"); near != "" {
		t.Errorf("an earthquake is taken for %q", near)
	}
}

func TestAppliesKnowsTheDefaultsOfAScenario(t *testing.T) {
	k, _ := Lookup("noise")
	if !k.Applies("", "") || k.Applies(messages.SDK, "") || !k.Where.Has(Sim) {
		t.Error("noise is of stdio, of both eras, and of the simulation")
	}
	k, _ = Lookup("grandchild")
	if k.Where.Has(Sim) || !k.Where.Has(Real) {
		t.Error("only a process has children")
	}
}

// TestValuesAreReadByTheirTypes: each type has its values, and what cannot be read is the default of the location.
func TestValuesAreReadByTheirTypes(t *testing.T) {
	k, _ := Lookup("stderr-flood")
	v := k.With(Sim, map[string]string{"bytes": "2MiB", "every": "nonsense"})
	if v.Int("bytes") != 2<<20 || v.Duration("every").Seconds() != 1 || v.Int("no-such") != 0 {
		t.Errorf("%v", v)
	}
	k, _ = Lookup("tool-error")
	v = k.With(Sim, map[string]string{"rpc": "yes", "chance": "0.25", "code": "-7"})
	if !v.Bool("rpc") || v.Float("chance") != 0.25 || v.Int("code") != 7 || v.Float("rpc") != 0 || v.Text("text") != "" {
		t.Errorf("%v", v)
	}
	k, _ = Lookup("latency")
	if v = k.With(Sim, nil); v.Float("jitter") != 0.5 {
		t.Errorf("in a scenario %v", v)
	}
	if v = k.With(Program, nil); v["jitter"] != 0.0 {
		t.Errorf("in a rule %v", v)
	}
	if v = k.With(Sim, map[string]string{"jitter": "3s"}); v.Duration("jitter").Seconds() != 3 {
		t.Errorf("with a time %v", v)
	}
}

func ExampleLookup() {
	k, _ := Lookup("throttle")
	fmt.Println(k.Reports[0], k.DoesAt(HTTP))
	fmt.Println(k.CheckParams(HTTP, map[string]string{"after": "30s"}))
	fmt.Println(k.CheckParams(HTTP, map[string]string{"afer": "30s"}))
	fmt.Println(k.With(HTTP, map[string]string{"after": "30s"}).Duration("after"), k.With(HTTP, nil).Duration("after"))
	fmt.Println(k.ProblemAt(Stdio))
	// Output:
	// H6 the server asks to wait
	// <nil>
	// throttle has no parameter "afer"; did you mean "after"?
	// 30s 5s
	// throttle cannot be done over stdio: there is no HTTP
}
