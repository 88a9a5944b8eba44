package seeds_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func TestEveryFeatureIsShownOrWaits(t *testing.T) {
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	list, err := seeds.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 300 {
		t.Fatalf("only %d features were read", len(list))
	}
	s, err := seeds.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range seeds.Check(list, s) {
		t.Error(problem)
	}
}

// source is a test file that shows things well and badly.
const source = `package x

import (
	"testing"

	named "github.com/mcpvisor/mcpvisor/test/seeds"
)

func TestGood(t *testing.T) {
	named.Shows(t, "000.1.a", "000.1.b")
	t.Run("sub", func(t *testing.T) { named.Shows(t, "000.1.c") })
}

func TestAlso(t *testing.T) { named.Shows(t, "000.1.a") }

func TestNothing(t *testing.T) {}

func TestMain(m *testing.M) {}

func helper(t *testing.T) { named.Shows(t, "000.1.d") }

func TestVariable(t *testing.T) {
	id := "000.1.e"
	named.Shows(t, id)
}
`

func read(t *testing.T) *seeds.Sources {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pkg/x_test.go":          source,
		"pkg/testdata/y_test.go": "this is not Go",
		".cache/z_test.go":       "nor is this",
		"other/go.mod":           "module other",
		"other/o_test.go":        "nor this",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := seeds.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSourcesAreRead(t *testing.T) {
	s := read(t)
	if len(s.Tests) != 4 || !s.Tests["pkg.TestNothing"] {
		t.Errorf("tests %v", s.Tests)
	}
	if got := seeds.Tests(s, "000.1.a"); !slices.Equal(got, []string{"pkg.TestAlso", "pkg.TestGood"}) {
		t.Errorf("000.1.a is shown by %v", got)
	}
	if got := seeds.Tests(s, "000.1.c"); !slices.Equal(got, []string{"pkg.TestGood"}) {
		t.Errorf("000.1.c is shown by %v", got)
	}
	if len(s.Problems) != 2 || !strings.Contains(s.Problems[0], "helper") || !strings.Contains(s.Problems[1], "literal") {
		t.Errorf("wrong calls %q", s.Problems)
	}
}

// Each planted fault of the list is found, once.
func TestPlantedFaultsAreFound(t *testing.T) {
	s := read(t)
	s.Problems = nil
	both := []string{"pkg.TestAlso", "pkg.TestGood"}
	clean := []seeds.Feature{
		{ID: "000.1.a", Line: "1", Text: "a", Test: both},
		{ID: "000.1.b", Line: "2-3", Text: "b", Test: both[1:]},
		{ID: "000.1.c", Line: "4", Text: "c", Test: both[1:]},
		{ID: "000.1.w", Line: "5", Text: "w", Waits: "web page"},
	}
	if bad := seeds.Check(clean, s); len(bad) > 0 {
		t.Fatalf("the clean list is not: %q", bad)
	}
	for want, f := range map[string]seeds.Feature{
		"twice":               {ID: "000.1.w", Line: "5", Text: "w", Waits: "web page"},
		"needs an id":         {ID: "0.1.w", Line: "5", Text: "w", Waits: "web page"},
		"a line like":         {ID: "000.1.x", Line: "x", Text: "w", Waits: "web page"},
		"and a text":          {ID: "000.1.x", Line: "5", Waits: "web page"},
		"which is none of":    {ID: "000.1.x", Line: "5", Text: "w", Waits: "spring"},
		"shown by no test":    {ID: "000.1.x", Line: "5", Text: "w"},
		"remove one of them":  {ID: "000.1.x", Line: "5", Text: "w", Waits: "web page", Test: []string{"pkg.TestNothing"}},
		"no such test":        {ID: "000.1.x", Line: "5", Text: "w", Test: []string{"pkg.TestGone"}},
		"which is not in the": {ID: "000.1.a", Line: "1", Text: "a", Test: both},
	} {
		list := append(slices.Clone(clean), f)
		if want == "which is not in the" {
			list = clean[:2] // 000.1.c is gone, and a test still shows it
		}
		bad := seeds.Check(list, s)
		if !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, want) }) {
			t.Errorf("%+v: found %q, want %q", f, bad, want)
		}
	}
	clean[0].Test = both[:1]
	if bad := seeds.Check(clean, s); len(bad) != 1 || !strings.Contains(bad[0], "-bind") {
		t.Errorf("a list that was not bound again gives %q", bad)
	}
}

func TestBindWritesTestsAndNothingElse(t *testing.T) {
	const before = `# A list.

# 1. Section
- id: 000.1.a
  line: 1
  text: a
- id: 000.1.b
  line: 2
  text: b
  test:
    - pkg.TestGone
    - pkg.TestLost

# 2. Section
- id: 000.1.w
  line: 5
  text: w
  waits: web page
`
	const after = `# A list.

# 1. Section
- id: 000.1.a
  line: 1
  text: a
  test:
    - pkg.TestAlso
    - pkg.TestGood
- id: 000.1.b
  line: 2
  text: b
  test:
    - pkg.TestGood

# 2. Section
- id: 000.1.w
  line: 5
  text: w
  waits: web page
`
	s := read(t)
	if got := seeds.Bind(before, s); got != after {
		t.Errorf("got\n%s\nwant\n%s", got, after)
	}
	if got := seeds.Bind(after, s); got != after {
		t.Errorf("a second time gives\n%s", got)
	}
}

func TestShowsRefusesAnUnknownFeature(t *testing.T) {
	show := seeds.Shows // by another name, so that this test shows nothing
	show(t, "000.4.connect")
	r := &recorder{TB: t}
	show(r, "000.4.connect", "000.4.conect")
	if len(r.errors) != 1 {
		t.Errorf("%d errors for one misspelt feature", len(r.errors))
	}
}

type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, _ ...any) { r.errors = append(r.errors, format) }
func (r *recorder) Helper()                        {}
