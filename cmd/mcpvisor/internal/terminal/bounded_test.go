package terminal

import (
	"bytes"
	"io"
	"strings"
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
