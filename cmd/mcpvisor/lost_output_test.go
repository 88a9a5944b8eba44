package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// failing is an output whose writes all fail with err.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestOutputThatIsLostIsAnError checks the exit codes of several commands whose output is lost.
// Output to a full disk gives exit code 1; output to a reader who leaves is no error.
func TestOutputThatIsLostIsAnError(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"help"}, {"list", "--help"},
		{"permissions"}, {"permissions", "--json"}, {"audit", "--stats"}, {"completion", "bash"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("HOME", t.TempDir())
			t.Setenv("XDG_CONFIG_HOME", "")
			t.Setenv("XDG_STATE_HOME", "")
			var out, errs bytes.Buffer
			want := run(args, terminal.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			if want != exit.OK || out.Len() == 0 {
				t.Fatalf("exit %d and %d bytes of output, with: %s", want, out.Len(), errs.String())
			}
			errs.Reset()
			text := "mcpvisor: the output could not be written: no space left on device\n"
			if slices.Contains(args, "--json") {
				text = `{"schema":1,"error":{"class":"failed","text":"the output could not be written: no space left on device"},"exitCode":1}` + "\n"
			}
			full := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
			if code := run(args, terminal.Streams{In: strings.NewReader(""), Out: failing{full}, Err: &errs}); code != exit.Failed ||
				errs.String() != text {
				t.Errorf("a full disk: exit %d, %q", code, errs.String())
			}
			errs.Reset()
			gone := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
			if code := run(args, terminal.Streams{In: strings.NewReader(""), Out: failing{gone}, Err: &errs}); code != exit.OK || errs.Len() > 0 {
				t.Errorf("a reader who has left: exit %d, %q", code, errs.String())
			}
		})
	}
}
