package sim_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// These tests pin what Bubble needs of testing/synctest: that it accepts a new testing.T, that a bubble which cannot end is
// a panic of the goroutine that made it and can be caught, and that stacks name their bubble. If one fails with a new
// version of Go, Bubble is the one place to change.

func TestBubbleHasTimeOfItsOwn(t *testing.T) {
	began := time.Now()
	var took time.Duration
	if err := sim.Bubble(func() {
		start := time.Now()
		time.Sleep(24 * time.Hour)
		took = time.Since(start)
	}); err != nil {
		t.Fatal(err)
	}
	if took != 24*time.Hour {
		t.Errorf("a day in the bubble took %v", took)
	}
	if time.Since(began) > time.Hour {
		t.Error("the bubble slept in real time")
	}
}

func TestBubbleReportsAPanic(t *testing.T) {
	var e *sim.BubbleError
	if err := sim.Bubble(func() { panic("the wings are off") }); !errors.As(err, &e) {
		t.Fatalf("%v", err)
	}
	if e.Panic != "the wings are off" || e.Leaked() || len(e.Stacks) != 1 || !strings.Contains(e.Stacks[0], "TestBubbleReportsAPanic") {
		t.Errorf("%v\n%v", e, e.Stacks)
	}
}

func TestBubbleReportsWhatIsLeft(t *testing.T) {
	var e *sim.BubbleError
	if err := sim.Bubble(func() {
		go leftBehind(make(chan int))
		go leftBehind(make(chan int))
	}); !errors.As(err, &e) {
		t.Fatalf("%v", err)
	}
	if !e.Leaked() || len(e.Stacks) != 2 || !strings.Contains(e.Stacks[0], "leftBehind") {
		t.Errorf("%v: %d stacks\n%s", e, len(e.Stacks), strings.Join(e.Stacks, "\n\n"))
	}
}

func leftBehind(c chan int) { <-c }

func TestBubbleReportsADeadlock(t *testing.T) {
	var e *sim.BubbleError
	if err := sim.Bubble(func() { leftBehind(make(chan int)) }); !errors.As(err, &e) {
		t.Fatalf("%v", err)
	}
	if e.Leaked() || e.Panic != nil || !strings.Contains(strings.Join(e.Stacks, "\n"), "leftBehind") {
		t.Errorf("%v\n%s", e, strings.Join(e.Stacks, "\n\n"))
	}
}

func TestBubbleReportsAGoexit(t *testing.T) {
	if err := sim.Bubble(runtime.Goexit); err == nil {
		t.Error("a goroutine that ended itself is no error")
	}
}

func TestBubblesSideBySide(t *testing.T) {
	errs := make(chan error)
	for i := range 8 {
		go func() {
			errs <- sim.Bubble(func() {
				if i%2 == 0 {
					go leftBehind(make(chan int))
				}
				time.Sleep(time.Hour)
			})
		}()
	}
	leaks := 0
	for range 8 {
		var e *sim.BubbleError
		if err := <-errs; errors.As(err, &e) {
			if !e.Leaked() || len(e.Stacks) != 1 {
				t.Errorf("%v\n%s", e, strings.Join(e.Stacks, "\n\n"))
			}
			leaks++
		}
	}
	if leaks != 4 {
		t.Errorf("%d of the 8 bubbles leak, not 4", leaks)
	}
}
