package clients

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// blankTexts are files without an entry, as programs and people leave them, in each language.
var blankTexts = map[string][]string{
	"JSON": {"", "\n", " \t\n", "// a\n", "// a", "/* a\n   [b] */\n", "  // a\n// b\n\n", "null", "null\n", "// a\nnull // b\n", "{}", "{}\n", "// a\n{}\n", "{}\n// a\n",
		"{\n  // a\n}\n", "{ /* a */ }\n"},
	"TOML": {"", "\n", " \t\n", "# a\n", "# a", "  # a\n# b\n\n"},
	"YAML": {"", "\n", " \n\n", "# a\n", "# a", "  # a\n# b\n\n", "null", "null\n", "~\n", "# a\nnull # b\n", "{}", "{}\n", "# a\n{}\n", "{}\n# a\n", "---\n", "--- null\n",
		"---\n# a\n", "# a\n---\n", "--- {}\n", "extensions:\n", "extensions: null\n", "extensions: {}\n"},
}

// A file without an entry is connected like one that is not there, and given back byte for byte: with its comments, its byte order mark and its
// line endings. A file of Goose that held comments only was refused once, as empty.
func TestFilesWithoutAnEntry(t *testing.T) {
	dir := t.TempDir()
	for _, format := range foreign.Formats {
		file := filepath.Join(dir, "settings."+strings.ToLower(format.Syntax()))
		for _, text := range blankTexts[format.Syntax()] {
			for _, before := range []string{text, "\ufeff" + text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")} {
				if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
				place := foreign.Location{Format: format, Path: filepath.ToSlash(file)}
				old, err := readPlace(place, "")
				if err != nil {
					t.Errorf("%s: %q: %v", format, before, err)
					continue
				}
				entry := foreign.StdioEntryFor(format, config.File{Path: place.Path, Scope: messages.ScopeUser, Data: old.Text}, entryName, "/opt/mcpvisor", []string{"connect"}, nil)
				after, err := putEntry(format, old.Text, entry)
				if err != nil {
					t.Errorf("%s: %q: %v", format, before, err)
					continue
				}
				if err := checkReadBack(place, after, "/opt/mcpvisor", []string{"connect"}, nil); err != nil {
					t.Errorf("%s: %q: %v: %q", format, before, err, after)
				}
				if strings.HasPrefix(before, "\ufeff") != bytes.HasPrefix(after, []byte("\ufeff")) || strings.Contains(before, "\r\n") && bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) {
					t.Errorf("%s: %q: the layout is another one: %q", format, before, after)
				}
				for _, comment := range []string{"// a", "# a", "# b", "[b]"} {
					if strings.Contains(before, comment) && !bytes.Contains(after, []byte(comment)) {
						t.Errorf("%s: %q: the comment %s is gone: %q", format, before, comment, after)
					}
				}
				if given, ok := spliceOf([]byte(before), after).undo(after); !ok || string(given) != before {
					t.Errorf("%s: %q: given back is %q", format, before, given)
				}
				// By another hand the file has changed since: only the entry goes.
				if removed, err := removeEntry(format, after, entry.Path); err != nil || bytes.Contains(removed, []byte("mcpvisor")) {
					t.Errorf("%s: %q: without the entry it is %q: %v", format, before, removed, err)
				}
			}
		}
	}
}

// A broken file, and one that holds another value than keys, are refused as before.
func TestBrokenFilesAreNotBlank(t *testing.T) {
	dir := t.TempDir()
	for format, texts := range map[foreign.Format][]string{
		foreign.Cursor: {"/* a", "nul", "null null", "// a\n[", "# a\n", "[]"},
		foreign.Goose:  {"- a\n", "nothing\n", "null\n- a\n", "a: [\n"},
	} {
		file := filepath.Join(dir, "settings."+strings.ToLower(format.Syntax()))
		for _, text := range texts {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readPlace(foreign.Location{Format: format, Path: filepath.ToSlash(file)}, ""); err == nil {
				t.Errorf("%s: %q is taken for a file without an entry", format, text)
			}
		}
	}
}
