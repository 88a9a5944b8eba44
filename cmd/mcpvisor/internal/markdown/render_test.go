package markdown_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/tools/txtar"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/markdown"
)

var update = flag.Bool("update", false, "write the lines that are printed into testdata")

// TestTopicsAreLaidOutForATerminal renders each file of testdata: a head that says what it shows, the Markdown, and its lines
// for a terminal of 60 columns, first without colours and then with colours, whose control sequences stand as \e.
func TestTopicsAreLaidOutForATerminal(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Comment) == 0 || len(a.Files) != 3 {
			t.Fatalf("%s has no head, or not three files", name)
		}
		source := string(a.Files[0].Data)
		for i, colours := range []bool{false, true} {
			got := markdown.Render(source, markdown.Options{Width: 60, Colours: colours})
			got = strings.ReplaceAll(got, "\x1b", `\e`)
			if *update {
				a.Files[i+1].Data = []byte(got)
			} else if want := string(a.Files[i+1].Data); got != want {
				t.Errorf("%s, %s:\n%s\nwant:\n%s", name, a.Files[i+1].Name, got, want)
			}
		}
		if *update {
			if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// FuzzRender checks for any source that the last line is ended and that colours leave no broken control sequence.
func FuzzRender(f *testing.F) {
	f.Add("# Title\n\nSome `code` and words.\n\n| a | b |\n|---|---|\n| one two three | four five six |\n", 40)
	f.Add("- one\n- two\n\n  more\n\n1. first\n2. second\n", 24)
	f.Add("> said\n\n    code\n\n```\nfenced\n```\n\n---\n", 30)
	f.Fuzz(func(t *testing.T, source string, width int) {
		width = 24 + (width%100+100)%100
		if len(source) > 4096 || strings.ContainsAny(source, "\x1b\x00") {
			return
		}
		plain := markdown.Render(source, markdown.Options{Width: width})
		if !strings.HasSuffix(plain, "\n") {
			t.Errorf("the last line is not ended: %q", plain)
		}
		painted := text.StripEscape(markdown.Render(source, markdown.Options{Width: width, Colours: true}))
		if strings.Contains(painted, "\x1b") {
			t.Errorf("a control sequence is broken: %q", painted)
		}
	})
}

// TestNoLineIsWiderThanTheTerminal checks at each width that lines keep within it and that no word is lost.
func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	source := "# A title\n\n" + strings.Repeat("some `words` of a *paragraph* ", 20) +
		"\n\n| key | meaning |\n|---|---|\n| `a` | " + strings.Repeat("what it means ", 20) + "|\n"
	for width := 24; width < 140; width++ {
		for line := range strings.Lines(markdown.Render(source, markdown.Options{Width: width})) {
			if n := text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("at %d columns a line has %d: %q", width, n, line)
			}
		}
		if n := strings.Count(markdown.Render(source, markdown.Options{Width: width}), "paragraph"); n != 20 {
			t.Errorf("at %d columns %d of 20 words are printed", width, n)
		}
	}
}
