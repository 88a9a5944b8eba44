package reach

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// Word is one thing that a scenario can say, with the number of counted days that say it.
type Word struct {
	// Part names its place in a scenario: servers, faults, commands, load, agents, manager or sometimes.
	Part, Word string
	Days       int
}

// Count makes the days of some seeds and counts the words of each.
func Count(first uint64, seeds int) []Word {
	days := map[Word]int{}
	for _, w := range allWords() {
		days[w] = 0
	}
	for seed := first; seed < first+uint64(seeds); seed++ {
		for w := range wordsIn(generate.Scenario(seed, generate.Options{})) {
			days[w]++
		}
	}
	words := slices.Collect(maps.Keys(days))
	for i := range words {
		words[i].Days = days[words[i]]
	}
	slices.SortFunc(words, func(a, b Word) int {
		return cmp.Or(strings.Compare(a.Part, b.Part), cmp.Compare(a.Days, b.Days), strings.Compare(a.Word, b.Word))
	})
	return words
}

// ignoredKeys are the words of each part that no day needs to have: names and selectors, and what stands everywhere.
var ignoredKeys = []string{"name", "on", "at", "do", "fault", "with", "kind", "era", "tasks", "tool", "read", "over", "as"}

// allWords are the words that there are.
func allWords() (words []Word) {
	for part, values := range scenarioParts(scenario.Scenario{}, true) {
		for _, one := range values {
			for i := range one.NumField() {
				if key := keyOf(one.Type().Field(i)); !slices.Contains(ignoredKeys, key) {
					words = append(words, Word{Part: part, Word: key})
				}
			}
		}
	}
	for _, k := range scenario.Kinds {
		words = append(words, Word{Part: "servers", Word: "kind: " + string(k)})
	}
	for _, e := range scenario.Eras {
		words = append(words, Word{Part: "servers", Word: "era: " + string(e)})
	}
	for _, t := range []string{scenario.TasksOptional, scenario.TasksRequired} {
		words = append(words, Word{Part: "servers", Word: "tasks: " + t})
	}
	for do := range scenario.Commands {
		words = append(words, Word{Part: "commands", Word: do})
	}
	words = append(words, Word{Part: "commands", Word: "configure, with servers"})
	for _, w := range []string{scenario.ReadTool, scenario.PutTool, scenario.WriteTool} {
		words = append(words, Word{Part: "load", Word: "tool: " + w})
	}
	for _, w := range scenario.Reads {
		words = append(words, Word{Part: "load", Word: "read: " + w})
	}
	for _, w := range append([]string{scenario.OverLines, scenario.OverHTTP}, string(messages.EraLegacy), string(messages.EraModern)) {
		words = append(words, Word{Part: "agents", Word: w})
	}
	for w := range scenario.Occasions {
		words = append(words, Word{Part: "sometimes", Word: w})
	}
	for _, k := range faults.Kinds() {
		if !k.Where.Has(faults.Sim) {
			continue
		}
		words = append(words, Word{Part: "faults", Word: k.Name})
		for _, p := range k.ParamsAt(faults.Sim) {
			if p.Words == nil && p.Type != "text" {
				words = append(words, Word{Part: "faults", Word: k.Name + ", " + p.Name})
			}
			for _, w := range p.Words {
				words = append(words, Word{Part: "faults", Word: k.Name + ", " + p.Name + ": " + w})
			}
		}
	}
	return words
}

// wordsIn are the words of one scenario.
func wordsIn(s scenario.Scenario) map[Word]bool {
	words := map[Word]bool{}
	addWord := func(part, word string) { words[Word{Part: part, Word: word}] = true }
	for part, values := range scenarioParts(s, false) {
		for _, one := range values {
			for i := range one.NumField() {
				if key := keyOf(one.Type().Field(i)); !one.Field(i).IsZero() && !slices.Contains(ignoredKeys, key) {
					addWord(part, key)
				}
			}
		}
	}
	for _, g := range s.Servers {
		addWord("servers", "kind: "+string(cmp.Or(g.Kind, messages.Stdio)))
		addWord("servers", "era: "+string(cmp.Or(g.Era, messages.EraLegacy)))
		if g.Tasks != "" {
			addWord("servers", "tasks: "+g.Tasks)
		}
	}
	for _, c := range s.Commands {
		if addWord("commands", c.Do); c.Do == "configure" && len(c.On) > 0 {
			addWord("commands", "configure, with servers")
		}
	}
	for _, l := range s.Load {
		if l.Read != "" {
			addWord("load", "read: "+l.Read)
			continue
		}
		addWord("load", "tool: "+cmp.Or(l.Tool, scenario.WriteTool))
	}
	for _, a := range s.Agents {
		addWord("agents", cmp.Or(a.Over, scenario.OverLines))
		addWord("agents", string(cmp.Or(a.Era, messages.EraLegacy)))
	}
	for _, w := range s.Sometimes {
		addWord("sometimes", w)
	}
	for _, f := range s.Faults {
		k, _ := faults.Lookup(f.Fault)
		addWord("faults", f.Fault)
		for _, p := range k.ParamsAt(faults.Sim) {
			value, given := f.With[p.Name]
			switch {
			case p.Words != nil:
				addWord("faults", k.Name+", "+p.Name+": "+cmp.Or(value, p.Default))
			case given && p.Type != "text":
				addWord("faults", k.Name+", "+p.Name)
			}
		}
	}
	return words
}

// scenarioParts are the entries of a scenario by the part in which they stand; with empty, one that is empty of each.
func scenarioParts(s scenario.Scenario, empty bool) map[string][]reflect.Value {
	if empty {
		s.Servers, s.Faults = []scenario.Group{{}}, []scenario.Fault{{}}
		s.Commands, s.Load, s.Agents = []scenario.Command{{}}, []scenario.Load{{}}, []scenario.Agents{{}}
	}
	return map[string][]reflect.Value{
		"servers": toValues(s.Servers), "faults": toValues(s.Faults), "commands": toValues(s.Commands), "load": toValues(s.Load),
		"agents": toValues(s.Agents), "manager": {reflect.ValueOf(s.Manager)},
	}
}

// toValues wraps each element for reflection: the words are read from the types, so that a new field cannot be forgotten.
func toValues[T any](list []T) (out []reflect.Value) {
	for _, one := range list {
		out = append(out, reflect.ValueOf(one))
	}
	return out
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}
