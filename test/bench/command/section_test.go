package command

import (
	"strings"
	"testing"
	"time"
)

// The row is a ratio of medians: one start that the machine held up does not count.
func TestTheRowIsARatioOfMedians(t *testing.T) {
	ours := []start{{30 * time.Millisecond, 20 * time.Millisecond}, {time.Minute, time.Minute}, {30 * time.Millisecond, 20 * time.Millisecond}}
	other := []start{{3 * time.Millisecond, time.Millisecond}, {3 * time.Millisecond, time.Millisecond}, {0, 0}}
	r := reportOf(ours, other)
	if len(r.Rows) != 2 || r.Rows[0].Value != 10 || r.Rows[1].Value != 20 {
		t.Errorf("%+v", r.Rows)
	}
	if n := strings.Count(r.Samples, "\n"); n != 6 {
		t.Errorf("%d samples", n)
	}
}

// Both programs are built and started as the section does it.
func TestBothProgramsStart(t *testing.T) {
	if testing.Short() {
		t.Skip("it links mcpvisor")
	}
	ours, other, err := buildBoth(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{ours, "version"}, {other}} {
		if s, err := runOnce(t.Context(), argv); err != nil || s.clock <= 0 {
			t.Errorf("%q: %+v, %v", argv, s, err)
		}
	}
}
