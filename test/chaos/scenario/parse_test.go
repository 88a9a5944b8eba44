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
