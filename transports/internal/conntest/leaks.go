package conntest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// CheckLeaks fails a test at its end for goroutines that were not there when it was called. They have Bound to end: goleak by itself
// gives them half a second, which a busy machine needs to let one run.
func CheckLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := findLeaks(before); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
}

// RunAndCheckLeaks runs the tests of a package and returns the exit code: 1 also for goroutines that are left after all of them.
func RunAndCheckLeaks(m *testing.M) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	if err := findLeaks(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func findLeaks(ignored ...goleak.Option) error {
	for deadline := time.Now().Add(Bound); ; {
		err := goleak.Find(ignored...) // it waits a little itself
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
