package terminal

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
)

// CheckedWriter is the standard output of a run. It remembers the first write that failed, so that a script on a full disk does
// not take an empty file for a result. It is safe for concurrent use if the writer below it is.
type CheckedWriter struct {
	io.Writer

	mu     sync.Mutex
	failed error // the first error of a write; nil if all succeeded
}

// Write writes to the output and remembers the first error.
func (o *CheckedWriter) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.failed == nil {
			o.failed = err
		}
	}
	return n, err
}

// ResultError returns the error that a run ends with, given the error of its command. Output that is not whole is an error of
// its own, unless the reader has gone (EPIPE): a person ends a long list so, with head or less. An error of the command weighs
// more.
func (o *CheckedWriter) ResultError(err error) error {
	o.mu.Lock()
	failed := o.failed
	o.mu.Unlock()
	switch silent := err == nil || err.Error() == ""; {
	case failed == nil || !silent && !errors.Is(err, failed):
		return err
	case errors.Is(failed, syscall.EPIPE) || errors.Is(failed, io.ErrClosedPipe):
		if silent {
			return err
		}
		return nil
	}
	text := failed.Error()
	var path *os.PathError
	if errors.As(failed, &path) {
		text = path.Err.Error()
	}
	return exit.With(exit.Failed, "the output could not be written: "+messages.Line(text, 200))
}

// Fd returns the descriptor of the output, or an invalid one if it has none, so that IsTerminal answers false.
func (o *CheckedWriter) Fd() uintptr {
	if f, ok := o.Writer.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}
