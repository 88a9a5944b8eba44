package project

import (
	"reflect"
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

// TestAListShowsHowTheLastAttemptEnded: a server whose next attempt is under way, or has failed in this moment without a plan for
// the one after, is shown as its last attempt ended. One whose first attempt is under way is shown as it is.
func TestAListShowsHowTheLastAttemptEnded(t *testing.T) {
	ended := messages.Status{Name: "crash", Status: messages.Failed, Class: messages.ClassExited, Retry: messages.RetryAt, Attempts: 1}
	undecided := messages.Status{Name: "crash", Status: messages.Failed, Class: messages.ClassExited, Attempts: 2}
	decided := undecided
	decided.Retry = messages.RetryParked
	first := messages.Status{Name: "first", Status: messages.Failed, Class: messages.ClassTimeout}
	for _, c := range []struct {
		name       string
		now, shown messages.Status
	}{
		{"connecting again", messages.Status{Name: "crash", Status: messages.Pending, Step: messages.Handshaking}, ended},
		{"failed again, what follows is not decided", undecided, ended},
		{"failed again", decided, decided},
		{"well", messages.Status{Name: "crash", Status: messages.Connected}, messages.Status{Name: "crash", Status: messages.Connected}},
	} {
		all := []messages.Status{c.now, first}
		showEndedAttempts(all, map[string]messages.Status{"crash": ended})
		if !reflect.DeepEqual(all, []messages.Status{c.shown, first}) {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
}
