package project

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// TestAnErrorSaysWhenTheServerIsTriedAgain checks that the error about a server has the time until the next attempt if a running up
// will make it, and none if the server ends with the command.
func TestAnErrorSaysWhenTheServerIsTriedAgain(t *testing.T) {
	next := time.Now().Add(time.Hour)
	st := messages.Status{Name: "x", Status: messages.Failed, Class: messages.ClassExited, Error: "it ended", NextAttempt: &next}
	up := &Project{Up: &control.Hello{}}
	if after := up.UnreachableError(st).RetryAfter; after <= 50*time.Minute || after > time.Hour {
		t.Error(after)
	}
	if after := (&Project{}).UnreachableError(st).RetryAfter; after != 0 {
		t.Errorf("%v, though nobody tries again", after)
	}
}
