package terminal

import (
	"errors"
	"syscall"
	"testing"
)

// TestAnErrorOfTheCommandWeighsMore checks that a failed write hides no error of the command, and that without one there is none.
func TestAnErrorOfTheCommandWeighsMore(t *testing.T) {
	other := errors.New("a")
	if (&CheckedWriter{failed: syscall.ENOSPC}).ResultError(other) != other || (&CheckedWriter{}).ResultError(nil) != nil {
		t.Error("what went wrong besides counts more")
	}
}
