package sim

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// spin goes on until over is closed.
func spin(over <-chan struct{}) {
	for running := true; running; {
		select {
		case <-over:
			running = false
		default:
		}
	}
}

func TestALoopBesideARunIsNamed(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	var said string
	err := waitBounded("The history is judged", func(text string) { said = text }, 20*time.Millisecond, 20, func() { spin(over) })
	var hung *HungError
	if !errors.As(err, &hung) || !strings.Contains(hung.Cause, "The history is judged") {
		t.Fatalf("%v", err)
	}
	if !strings.HasPrefix(said, "The history is judged: It is running") {
		t.Errorf("%q", said)
	}
}

func TestWhatEndsIsNoHang(t *testing.T) {
	done := false
	if err := RunBounded("The scenario is made", nil, func() { done = true }); err != nil || !done {
		t.Error(err, done)
	}
}
