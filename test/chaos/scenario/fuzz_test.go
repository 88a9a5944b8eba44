package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Whatever a file holds: there is a scenario or there are problems, each problem is one line that can be printed, and what
// was read is read again from what is written of it, and planned or refused without a panic.
func FuzzParse(f *testing.F) {
	for _, s := range scenario.Library() {
		f.Add(s.YAML())
	}
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := scenario.Parse("fuzz.yaml", text)
		if err != nil {
			var ps scenario.Problems
			if !errors.As(err, &ps) || len(ps) == 0 || !reflect.DeepEqual(s, scenario.Scenario{}) {
				t.Fatalf("%T %v and %+v", err, err, s)
			}
			for _, p := range ps {
				for _, r := range p.Error() {
					if r < ' ' || r == 0x7f {
						t.Fatalf("a control character in %q", p.Error())
					}
				}
				if p.Line < 1 || p.Column < 1 || p.What == "" {
					t.Fatalf("no place: %+v", p)
				}
			}
			return
		}
		same, err := scenario.Parse("again.yaml", s.YAML())
		if err != nil {
			t.Fatalf("what is written cannot be read: %v\n%s", err, s.YAML())
		}
		if !reflect.DeepEqual(normal(s), normal(same)) {
			t.Fatalf("%+v\nbecame\n%+v\n%s", s, same, s.YAML())
		}
		for _, tier := range scenario.Tiers {
			p, err := s.Plan(1, tier)
			if err != nil {
				continue
			}
			for _, fault := range p.Faults {
				if fault.Begin > fault.End || fault.End > p.Heal || p.Heal > p.End {
					t.Fatalf("%+v heals at %v, over at %v", fault, p.Heal, p.End)
				}
			}
		}
	})
}

// normal leaves out the difference between an empty list and none, which is not written.
func normal(s scenario.Scenario) scenario.Scenario {
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			if v.Len() == 0 {
				v.SetZero()
			}
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			if v.Len() == 0 {
				v.SetZero()
			}
		default:
		}
	}
	s = s.Clone()
	walk(reflect.ValueOf(&s).Elem())
	return s
}
