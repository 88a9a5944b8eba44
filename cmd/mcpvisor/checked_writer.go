package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/mcpvisor/mcpvisor/messages"
)

// checkedWriter is the standard output of a run: it remembers the first write that failed, so that a script on a full disk does not
// take an empty file for a result. Safe for concurrent use if the writer is.
type checkedWriter struct {
	io.Writer

	mu     sync.Mutex
	failed error
}

func (o *checkedWriter) Write(b []byte) (int, error) {
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

// resultError is what a run ends with whose command ended with err. Output that is not whole is an error, unless the reader has gone
// (EPIPE): that is how a person ends a list that is long enough. What went wrong besides counts more.
func (o *checkedWriter) resultError(err error) error {
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
	return &exitError{exitFailed, "the output could not be written: " + messages.Line(text, 200)}
}

// Fd is that of the file, and no descriptor at all if the output is none.
func (o *checkedWriter) Fd() uintptr {
	if f, ok := o.Writer.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// fileOf is the file that a stream of a run is, behind what this program has put around it; nil if it is none.
func fileOf(w any) *os.File {
	for {
		switch s := w.(type) {
		case *os.File:
			return s
		case *checkedWriter:
			w = s.Writer
		case *boundedWriter:
			w = s.out
		case *escapeWriter:
			w = s.out
		default:
			return nil
		}
	}
}
