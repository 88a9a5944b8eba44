package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of testdata as the machine is now: read the difference")

// TestTranscripts plays testdata/transcripts. A line "> Event" is an input; what follows it, up to a blank line or the
// next input, is the state that it led to and, indented, the effects. Lines that begin with # are for the reader. Each
// file begins with what happens in it and which faults it guards against.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			old := strings.ReplaceAll(string(golden), "\r\n", "\n")
			if !strings.HasPrefix(old, "# ") || !strings.Contains(old, "# Guards against") {
				t.Error("the head must say what happens and what the file guards against")
			}
			compare(t, file, old, play(t, old))
		})
	}
}

// play performs the inputs of a transcript and returns it with the outputs that they have now.
func play(t *testing.T, transcript string) string {
	b := new(strings.Builder)
	h := newHistory()
	output := false
	for line := range strings.Lines(transcript) {
		input, isInput := strings.CutPrefix(line, "> ")
		if !isInput {
			output = output && strings.TrimSpace(line) != "" && line[0] != '#'
			if !output {
				b.WriteString(line)
			}
			continue
		}
		output = true
		b.WriteString(line)
		before := h.state
		effects, err := h.step(mustRead(t, strings.TrimSpace(input)))
		if err != nil {
			t.Errorf("%s%v", line, err)
		}
		b.WriteString(outcome(before, h.state, effects, "ignored"))
	}
	return b.String()
}

// outcome has the state and the effects of one step.
func outcome(before, after State, effects []Effect, ignored string) string {
	b := new(strings.Builder)
	if unchanged(before, after) && len(effects) == 0 {
		b.WriteString(ignored)
	} else {
		b.WriteString(writeState(after))
	}
	if after.Answered > before.Answered {
		fmt.Fprintf(b, ", ticket %d answered", after.Answered)
	}
	b.WriteString("\n")
	for _, e := range effects {
		fmt.Fprintf(b, "    %s\n", write(e))
	}
	return b.String()
}

// unchanged reports whether nothing but the tickets differs.
func unchanged(before, after State) bool {
	after.Ticket, after.Answered = before.Ticket, before.Answered
	return reflect.DeepEqual(before, after)
}

// compare fails at the first line that differs from the golden file, or writes the file if the flag says so.
func compare(t *testing.T, file, want, got string) {
	t.Helper()
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; ; i++ {
		if i == len(g) || i == len(w) || g[i] != w[i] {
			at := func(lines []string) string {
				return strings.Join(lines[min(i, len(lines)):min(i+4, len(lines))], "\n\t")
			}
			t.Fatalf("%s:%d differs (-update writes what is now)\nnow\n\t%s\nfile\n\t%s", file, i+1, at(g), at(w))
		}
	}
}
