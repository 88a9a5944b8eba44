package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/faults"
)

func TestTheCatalogueIsSortedAndComplete(t *testing.T) {
	all := faults.All()
	for i, k := range all {
		if i > 0 && all[i-1].Name >= k.Name {
			t.Errorf("%s stands behind %s", k.Name, all[i-1].Name)
		}
		if got, ok := faults.Find(k.Name); !ok || got.Name != k.Name {
			t.Errorf("%s is not found by its name", k.Name)
		}
		if k.ID == "" || k.Description == "" || len(k.Kinds) == 0 || len(k.Eras) == 0 || len(k.Tiers) == 0 {
			t.Errorf("%s lacks something: %+v", k.Name, k)
		}
		if strings.HasSuffix(k.Description, ".") || strings.ToLower(k.Description[:1]) != k.Description[:1] {
			t.Errorf("%s: %q is not half a sentence as the others are", k.Name, k.Description)
		}
	}
	if _, ok := faults.Find("crash-"); ok {
		t.Error("a name that is none was found")
	}
}

// The names are fixed: scenarios that people have written stand on them.
func TestTheNames(t *testing.T) {
	want := strings.Fields(`crash crash-loop exit-after-list hang-start slow-start starved silent-discover die-on-discover noise
		stderr-flood huge-line endless-line half-line duplicate-response unknown-response late-response ignore-eof ignore-term
		grandchild missing-binary stop deaf exhausted hang-call ignore-cancel endless-progress cursor-loop empty-cursor
		list-changed list-storm change-during-list quiet-change duplicate-names long-names bad-schema bad-output tool-error
		die-mid-call answer-and-die modern-breach era-flip wrong-version latency big-result lose-session cut-stream half-open
		refuse reset black-hole throttle unauthorized rotate-token forbidden redirect silent-delete server-error
		wrong-content-type slow-drip truncate stale-session-400 rug-pull control-characters leak-canary sleep partition stuck-dial`)
	slices.Sort(want)
	var got []string
	for _, k := range faults.All() {
		got = append(got, k.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the names are\n%v\nand should be\n%v", got, want)
	}
}

// reports is every row of the list of field reports, with what makes it happen where it is no fault of a server: a
// command of a scenario, or the reason why there is nothing to be done to a server.
var reports = map[string]string{
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
	for _, k := range faults.All() {
		for _, id := range append([]string{k.ID}, k.Also...) {
			covered[id] = append(covered[id], k.Name)
			if _, ok := reports[id]; !ok {
				t.Errorf("%s belongs to the report %s, which there is not", k.Name, id)
			}
		}
	}
	for id, otherwise := range reports {
		if (len(covered[id]) > 0) == (otherwise != "") {
			t.Errorf("the report %s is covered by the faults %v, and otherwise by %q: it should be one of the two", id, covered[id], otherwise)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	for _, k := range faults.All() {
		with := map[string]string{}
		for _, p := range k.Params {
			with[p.Name] = p.Default
			if p.Description == "" || (p.Type == faults.Choice) != (len(p.Choices) > 0) {
				t.Errorf("%s: the parameter %s lacks something: %+v", k.Name, p.Name, p)
			}
		}
		if err := k.CheckParams(with); err != nil {
			t.Errorf("a default of %s: %v", k.Name, err)
		}
	}
}

func TestErrorsNameTheParameterAndWhatWasMeant(t *testing.T) {
	for _, c := range []struct {
		fault, param, value string
		kind                messages.TransportKind
		era                 messages.Era
		want                string
	}{
		{"crash", "cod", "1", messages.Stdio, "", `the fault "crash" has no parameter "cod": did you mean "code"?`},
		{"crash", "zzzzzz", "1", messages.Stdio, "", `the fault "crash" has no parameter "zzzzzz": it has code, signal, midcall, down`},
		{"hang-start", "by", "1s", messages.Stdio, "", `the fault "hang-start" has no parameter "by": it has none`},
		{"crash", "down", "soon", messages.Stdio, "", `parameter "down" of the fault "crash": "soon" is no time: write it like 250ms, 5s or 2m`},
		{"crash", "down", "-1s", messages.Stdio, "", `parameter "down" of the fault "crash": "-1s" is no time: write it like 250ms, 5s or 2m`},
		{"crash", "code", "one", messages.Stdio, "", `parameter "code" of the fault "crash": "one" is no whole number from 0 to 10000000`},
		{"crash", "midcall", "yes", messages.Stdio, "", `parameter "midcall" of the fault "crash": "yes" is neither true nor false`},
		{"noise", "rate", "0", messages.Stdio, "", `parameter "rate" of the fault "noise": "0" is no rate: a number per second, more than 0 and at most 100000`},
		{"noise", "rate", "NaN", messages.Stdio, "", `parameter "rate" of the fault "noise": "NaN" is no rate: a number per second, more than 0 and at most 100000`},
		{"noise", "when", "befor", messages.Stdio, "", `parameter "when" of the fault "noise": "befor" is not known: did you mean "before"?`},
		{"noise", "when", "midnight", messages.Stdio, "", `parameter "when" of the fault "noise": "midnight" is not one of always, before, during`},
		{"hang-call", "chance", "2", messages.Stdio, "", `parameter "chance" of the fault "hang-call": "2" is no probability from 0 to 1`},
		{"huge-line", "size", "2GiB", messages.Stdio, "", `parameter "size" of the fault "huge-line": "2GiB" is no size: write it like 4096, 64KiB or 32MiB, at most 1GiB`},
		{"noise", "rate", "1", messages.HTTP, "", `the fault "noise" cannot befall a server of kind http and era legacy: it belongs to kind stdio, era legacy, modern`},
		{"throttle", "when", "call", messages.WebSocket, "", `parameter "when" of the fault "throttle": a websocket has no statuses after it was opened: say handshake`},
		{"lose-session", "", "", messages.HTTP, messages.EraModern, `the fault "lose-session" cannot befall a server of kind http and era modern: it belongs to kind http, era legacy`},
	} {
		k, ok := faults.Find(c.fault)
		if !ok {
			t.Fatalf("no fault %q", c.fault)
		}
		with := map[string]string{}
		if c.param != "" {
			with[c.param] = c.value
		}
		if err := k.Check(with, c.kind, c.era); err == nil || err.Error() != c.want {
			t.Errorf("%s %s=%s: %v, expected %s", c.fault, c.param, c.value, err, c.want)
		}
	}
	if near := faults.Nearest("list-chnaged"); near != "list-changed" {
		t.Errorf("list-chnaged is taken for %q", near)
	}
	if near := faults.Nearest("earthquake"); near != "" {
		t.Errorf("an earthquake is taken for %q", near)
	}
}

func TestAppliesKnowsTheDefaultsOfAScenario(t *testing.T) {
	k, _ := faults.Find("noise")
	if !k.Applies("", "") || k.Applies(messages.SDK, "") || !k.In(faults.Sim) {
		t.Error("noise is of stdio, of both eras, and of the simulation")
	}
	k, _ = faults.Find("grandchild")
	if k.In(faults.Sim) || !k.In(faults.Real) {
		t.Error("only a process has children")
	}
}

func TestValuesAreTheDefaultsWhereNothingIsSaid(t *testing.T) {
	k, _ := faults.Find("stderr-flood")
	v := k.With(map[string]string{"bytes": "2MiB", "every": "nonsense"})
	if v.Int("bytes") != 2<<20 || v.Duration("every") != time.Second || v.Int("no-such") != 0 {
		t.Errorf("bytes %d, every %s", v.Int("bytes"), v.Duration("every"))
	}
	k, _ = faults.Find("tool-error")
	v = k.With(map[string]string{"rpc": "true", "chance": "0.25"})
	if !v.Bool("rpc") || v.Float("chance") != 0.25 || v.Text("code") != "32603" || v.Float("rpc") != 0 {
		t.Errorf("rpc %t, chance %g, code %s", v.Bool("rpc"), v.Float("chance"), v.Text("code"))
	}
}

func Example() {
	k, _ := faults.Find("throttle")
	fmt.Println(k.ID, k.Description)
	fmt.Println(k.Check(map[string]string{"after": "30s"}, messages.HTTP, messages.EraLegacy))
	fmt.Println(k.Check(map[string]string{"afer": "30s"}, messages.HTTP, messages.EraLegacy))
	fmt.Println(k.With(map[string]string{"after": "30s"}).Duration("after"), k.With(nil).Duration("after"))
	// Output:
	// H6 the server asks to wait
	// <nil>
	// the fault "throttle" has no parameter "afer": did you mean "after"?
	// 30s 5s
}
