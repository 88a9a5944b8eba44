package project

import (
	"context"
	"io"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// TestReadingEndsWithTheCommand checks that an interrupt ends a command whose standard input never ends.
func TestReadingEndsWithTheCommand(t *testing.T) {
	silent, hold := io.Pipe()
	defer hold.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.ErrInterrupted)
	_, err := readFiles(ctx, discover.Options{Files: []string{"-"}, Stdin: silent, Dir: t.TempDir()})
	if exit.CodeOf(err) != exit.Interrupted {
		t.Errorf("%d %v", exit.CodeOf(err), err)
	}
}
