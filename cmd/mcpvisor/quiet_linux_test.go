package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// unversioned lists the commands whose JSON is a server's own, or a record as it was written, without a version.
var unversioned = []string{"call", "prompt", "read", "audit"}

// TestEveryCommandIsQuietAndVersioned checks that with --quiet every command prints only its result, and with --json the
// version of its form.
func TestEveryCommandIsQuietAndVersioned(t *testing.T) {
	t.Parallel()
	p := newPlace(t, offering)
	up := p.start("up", "--config", "c.json")
	up.says("one.*connected")
	run := func(args ...string) (out, said string, code int) {
		cmd := p.command(append(args, "--config", "c.json")...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		code = exitCode(cmd.Run())
		return stdout.String(), stderr.String(), code
	}
	everyCommand(func(path string, c *cobra.Command) {
		line := strings.Fields(printing[path])
		if len(line) == 0 {
			return
		}
		if out, said, code := run(append(line, "-q")...); said != "" || code > 1 || out == "" && path != "approve" && path != "diff" {
			t.Errorf("%q -q: exit code %d, %q on standard error, %q", line, code, said, out)
		}
		if c.Flags().Lookup("json") == nil {
			return
		}
		line = append(slices.DeleteFunc(slices.Clone(line), func(word string) bool { return word == "--json" }), "-q", "--json")
		out, said, code := run(line...)
		if said != "" || code > 1 {
			t.Errorf("%q: exit code %d, %q on standard error", line, code, said)
		}
		for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
			var v json.RawMessage
			if err := d.Decode(&v); err != nil {
				t.Errorf("%q prints no JSON: %v\n%s", line, err, out)
				return
			}
			all := []json.RawMessage{v}
			if v[0] == '[' {
				_ = json.Unmarshal(v, &all) // it is an array
			}
			for _, object := range all {
				var version struct{ Schema int }
				if err := json.Unmarshal(object, &version); err != nil || (version.Schema == terminal.JSONSchema) == slices.Contains(unversioned, path) {
					t.Errorf("%q: %v, schema %d in %s", line, err, version.Schema, object)
				}
			}
		}
	})
	up.signal(syscall.SIGTERM)
	up.ends()
}
