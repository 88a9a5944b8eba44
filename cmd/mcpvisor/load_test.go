package main

import (
	"context"
	"io"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// TestReadingEndsWithTheCommand checks that an interrupt ends a command whose standard input never ends.
func TestReadingEndsWithTheCommand(t *testing.T) {
	silent, hold := io.Pipe()
	defer hold.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	_, err := readFiles(ctx, discover.Options{Files: []string{"-"}, Stdin: silent, Dir: t.TempDir()})
	if codeOf(err) != exitInterrupted {
		t.Errorf("%d %v", codeOf(err), err)
	}
}
