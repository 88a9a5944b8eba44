package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Each file of testdata/wrong is a scenario whose comments, from "# want " on, are the problems that must be told about it,
// in their order.
func TestProblemsHaveTheirPlaces(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(b)) {
				if text, ok := strings.CutPrefix(line, "# want "); ok {
					want = append(want, strings.TrimSpace(text))
				}
			}
			name := filepath.Base(file)
			s, err := scenario.Parse(name, b)
			if !reflect.DeepEqual(s, scenario.Scenario{}) {
				t.Errorf("a scenario is returned beside the error: %+v", s)
			}
			var ps scenario.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("the error is %T %v", err, err)
			}
			var got []string
			for _, p := range ps {
				got = append(got, strings.TrimPrefix(p.Error(), name+":"))
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Vet tells what only planning finds, in the tiers that a scenario names, or in one of them if it names none.
func TestVet(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing is wrong", "faults: [{fault: crash}]", ""},
		{"one tier is enough where none is named", "faults: [{fault: grandchild}]", ""},
		{"not where they are", "tiers: [sim, real]\nfaults: [{fault: grandchild}]",
			`v.yaml:4:18: the fault "grandchild" cannot be done in the tier sim; say tiers: [real], or leave it out`},
		{"both wrong", "faults: [{fault: reset}]",
			`v.yaml:3:10: it can happen to none of the servers that are picked: the fault "reset" cannot befall the server "web", ` +
				`which is stdio and legacy: it is for http, sse, websocket, legacy, modern`},
		{"what Parse says", "tiers: [dream]", `v.yaml:3:9: there is no tier "dream"; known are sim, real`},
	} {
		_, err := scenario.Vet("v.yaml", []byte("name: v\nservers: [{name: web}]\n"+c.text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}
