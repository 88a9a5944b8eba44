package arch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
)

func TestNoFolderHoldsAFamilyOfFiles(t *testing.T) {
	files, err := arch.ProductionFiles(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d folders with files: the tree was not read", len(files))
	}
	for _, problem := range arch.Families(files) {
		t.Error(problem)
	}
}

// Each planted family is found once; what is no family is not.
func TestPlantedFamiliesAreFound(t *testing.T) {
	for _, c := range []struct {
		folder, names string
		want          string // of the one problem; empty for none
	}{
		{"web", "http.go http_a.go http_b.go http_c.go http_d.go", ""},
		{"web", "http.go http_a.go http_b.go http_c.go http_d.go http_e.go", `web: 6 files begin with "http", more than 5`},
		{"web", "http.go http_a.go http_b.go http_linux.go http_other.go http_windows.go", "6 files"},
		{"web", "http.go https_a.go httpx.go http_b.go http_c.go http_d.go", ""},
		{"judge", "i01_a.go i02_b.go i03_c.go i04_d.go i05_e.go i06_f.go", ""},
		{"judge", "i01_a.go i01_b.go i01_c.go i01_d.go i01_e.go i01_f.go", `begin with "i01"`},
		{"cmd/ask", "ask.go ask_a.go ask_b.go ask_c.go ask_d.go ask_e.go", "more than 5"},
	} {
		bad := arch.Families(map[string][]string{c.folder: strings.Fields(c.names), "other": {"http.go"}})
		switch {
		case c.want == "" && len(bad) > 0:
			t.Errorf("%s: found %q, want nothing", c.names, bad)
		case c.want != "" && (len(bad) != 1 || !strings.Contains(bad[0], c.want)):
			t.Errorf("%s: found %q, want %q", c.names, bad, c.want)
		}
	}
}

// Tests, testdata and caches are no production files.
func TestProductionFilesLeavesTestsOut(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/x_a.go", "a/x_a_test.go", "a/x.md", "a/testdata/y.go", ".cache/z.go", "a/b/x_b.go"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := arch.ProductionFiles(dir)
	if err != nil || len(files) != 2 || !slices.Equal(files["a"], []string{"x_a.go"}) || !slices.Equal(files["a/b"], []string{"x_b.go"}) {
		t.Errorf("found %v, %v", files, err)
	}
}
