package scenario_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Every scenario of the library can be planned in its tiers, says what it is for, and its text is the file of its name.
func TestLibrary(t *testing.T) {
	list := scenario.Library()
	if !slices.IsSortedFunc(list, func(a, b scenario.Scenario) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted")
	}
	for _, s := range list {
		if len(s.About) < 60 {
			t.Errorf("%s: about %q says too little", s.Name, s.About)
		}
		tiers := s.Tiers
		if len(tiers) == 0 {
			tiers = scenario.Tiers
		}
		for _, tier := range tiers {
			p, err := s.Plan(0, tier)
			if err != nil {
				t.Errorf("%s in %s: %v", s.Name, tier, err)
			}
			if len(p.Faults)+len(p.Commands) == 0 {
				t.Errorf("%s in %s: nothing happens", s.Name, tier)
			}
		}
		text, ok := scenario.Text(s.Name)
		if !ok || !strings.HasPrefix(text, "# ") {
			t.Errorf("%s: the file does not begin with what it teaches: %.60q", s.Name, text)
		}
		same, err := scenario.Parse("", []byte(text))
		if named, ok := scenario.Named(s.Name); err != nil || !ok || !reflect.DeepEqual(named, same) {
			t.Errorf("%s: the text and the scenario differ: %v", s.Name, err)
		}
	}
	if _, ok := scenario.Named("none"); ok {
		t.Error("a scenario that does not exist")
	}
	if near := scenario.Nearest("stampde"); near != "stampede" {
		t.Errorf("nearest is %q", near)
	}
}

// What a caller does with a scenario of the library changes nothing for the next one.
func TestTheLibraryIsNobodys(t *testing.T) {
	s, _ := scenario.Named("flapping")
	s.Servers[0].Name, s.Faults[0].On[0], s.Faults[0].With["after"] = "x", "x", "x"
	second, _ := scenario.Named("flapping")
	if second.Servers[0].Name == "x" || second.Faults[0].On[0] == "x" || second.Faults[0].With["after"] == "x" {
		t.Errorf("%+v", second)
	}
}

// What is written is read as what it was.
func TestYAMLIsReadBack(t *testing.T) {
	for _, s := range scenario.Library() {
		text := s.YAML()
		same, err := scenario.Parse("again.yaml", text)
		if err != nil {
			t.Errorf("%s: %v\n%s", s.Name, err, text)
		} else if !reflect.DeepEqual(same, s) {
			t.Errorf("%s: %+v\nbecame %+v\n%s", s.Name, s, same, text)
		}
	}
}

// A list and a map stand on the line of their key, because a scenario that was made small is read from top to bottom; a word that would end
// such a line is quoted.
func TestYAMLHasListsOnOneLine(t *testing.T) {
	s := scenario.Scenario{Name: "short", Tiers: []scenario.Tier{scenario.Sim}, Servers: []scenario.Group{{Name: "a"}, {Name: "b"}},
		Commands: []scenario.Command{{Do: "adjust", On: scenario.Selector{"a", "[ab]", "any:1"}, With: map[string]string{"deny": "read,write"}}}}
	want := `name: short
tiers: [sim]
servers:
  - name: a
  - name: b
commands:
  - do: adjust
    on: [a, "[ab]", "any:1"]
    with: {deny: "read,write"}
`
	if got := string(s.YAML()); got != want {
		t.Errorf("written:\n%s\nwant:\n%s", got, want)
	}
	if same, err := scenario.Parse("short.yaml", []byte(want)); err != nil || !reflect.DeepEqual(same, s) {
		t.Errorf("read back: %+v, %v", same, err)
	}
}
