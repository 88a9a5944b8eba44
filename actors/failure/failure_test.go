package failure

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mcpvisor/mcpvisor/actors/failure/internal/known"
)

var update = flag.Bool("update", false, "write what Explain says into the files of testdata")

// documented begins the head of a file whose text was not made by breaking something, but is that of a tool's documentation.
const documented = "From the documentation"

func causeText(c Cause) string {
	return fmt.Sprintf("line: %s\nname: %s\nreason: %s\nfix: %s\n", c.Line, c.Name, c.Reason, c.Fix)
}

// Each file of testdata is the standard error of a program that was broken on purpose. Its head says how; "cause" is what we
// make of it, for a person to judge: is it true, and does it say what to do?
func TestExplain(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	met, real := map[string]bool{}, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(raw)
			if len(a.Files) != 2 || a.Files[0].Name != "stderr" || a.Files[1].Name != "cause" || len(a.Comment) < 20 {
				t.Fatal("a file has a head, stderr and cause")
			}
			stderr := string(a.Files[0].Data)
			c := Explain(stderr)
			if strings.Contains(string(a.Comment), "goes on running") {
				c = ExplainSilence(stderr)
			}
			if met[c.Name] = true; c.Name != "" && !strings.HasPrefix(string(a.Comment), documented) {
				real++
			}
			if got := causeText(c); got != string(a.Files[1].Data) {
				if !*update {
					t.Errorf("got\n%s\nwant\n%s", got, a.Files[1].Data)
				}
				a.Files[1].Data = []byte(got)
				if out := txtar.Format(a); *update && !bytes.Equal(out, raw) {
					if err := os.WriteFile(file, out, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
	if real < 60 {
		t.Errorf("%d known failures stand on a program that was really broken, want 60", real)
	}
	for _, table := range known.Tables {
		for _, k := range table.Rows {
			if !met[k.Name] {
				t.Errorf("no file of testdata shows %s", k.Name)
			}
		}
	}
}
