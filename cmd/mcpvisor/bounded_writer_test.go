package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAStandardErrorThatNobodyReads checks that a reader of standard error that does not read blocks no writer, and that a line
// says how much is missing.
func TestAStandardErrorThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		b := newBoundedWriter(w)
		start := time.Now()
		line := strings.Repeat("x", 1023) + "\n"
		for range 3000 {
			if n, err := io.WriteString(b, line); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
		}
		if took := time.Since(start); took > writeTime {
			t.Errorf("3,000 lines took %v", took)
		}
		var got bytes.Buffer
		read := make(chan struct{})
		go func() { defer close(read); _, _ = io.Copy(&got, r) }()
		synctest.Wait()
		io.WriteString(b, "the last\n")
		b.close()
		w.Close()
		<-read
		if text := got.String(); !strings.Contains(text, "lines missing here: nobody read them in time\n") ||
			!strings.HasSuffix(text, "the last\n") || len(text) > 2*maxBacklog {
			t.Errorf("%d bytes, which end with %q", len(text), text[len(text)-200:])
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		b := newBoundedWriter(w)
		io.WriteString(b, "x\n")
		start := time.Now()
		b.close()
		if took := time.Since(start); took > flushTime {
			t.Errorf("the end took %v", took)
		}
		r.Close()
	})
}

// TestTheOrderOfStreamsStays checks that a write to standard error returns after it is written while its reader keeps up.
func TestTheOrderOfStreamsStays(t *testing.T) {
	var both bytes.Buffer
	b := newBoundedWriter(&both)
	for range 100 {
		io.WriteString(b, "e")
		both.WriteString("o")
	}
	b.close()
	if both.String() != strings.Repeat("eo", 100) {
		t.Error(both.String())
	}
}

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
			want := run(args, streams{strings.NewReader(""), &out, &errs})
			if want != exitOK || out.Len() == 0 {
				t.Fatalf("exit %d and %d bytes of output, with: %s", want, out.Len(), errs.String())
			}
			errs.Reset()
			text := "mcpvisor: the output could not be written: no space left on device\n"
			if slices.Contains(args, "--json") {
				text = `{"schema":1,"error":{"class":"failed","text":"the output could not be written: no space left on device"},"exitCode":1}` + "\n"
			}
			full := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
			if code := run(args, streams{strings.NewReader(""), failing{full}, &errs}); code != exitFailed ||
				errs.String() != text {
				t.Errorf("a full disk: exit %d, %q", code, errs.String())
			}
			errs.Reset()
			gone := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
			if code := run(args, streams{strings.NewReader(""), failing{gone}, &errs}); code != exitOK || errs.Len() > 0 {
				t.Errorf("a reader who has left: exit %d, %q", code, errs.String())
			}
		})
	}
	other := errors.New("a")
	if (&checkedWriter{failed: syscall.ENOSPC}).resultError(other) != other || (&checkedWriter{}).resultError(nil) != nil {
		t.Error("what went wrong besides counts more")
	}
}
