package sim

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// spin goes on until over is set, and calls others meanwhile.
func spin(over *atomic.Bool) {
	for n := 0; !over.Load(); n++ {
		countDigits(n)
	}
}

var digits atomic.Int64

//go:noinline
func countDigits(n int) {
	for ; n > 0; n /= 10 {
		digits.Add(1)
	}
}

// take takes memory until over is set, at most 1 GiB.
func take(over *atomic.Bool) [][]byte {
	var all [][]byte
	for !over.Load() {
		if len(all) < 1<<10 {
			all = append(all, make([]byte, 1<<20))
		}
	}
	return all
}

// requireHung requires that work was given up, for a reason with each of the texts.
func requireHung(t *testing.T, err error, texts ...string) {
	t.Helper()
	var hung *HungError
	if !errors.As(err, &hung) {
		t.Fatalf("%v", err)
	}
	for _, text := range texts {
		if !strings.Contains(hung.Error(), text) {
			t.Errorf("%q does not stand in %q", text, hung)
		}
	}
}

func TestALoopBesideARunIsNamed(t *testing.T) {
	var over atomic.Bool
	defer over.Store(true)
	var said string
	w := boundedWork{what: "The history is judged", slow: func(text string) { said = text }, slowAfter: 20 * time.Millisecond, most: 4 * ticksPerLook}
	err := w.run(func(step func(string)) {
		step("I1")
		step("I5")
		spin(&over)
	})
	requireHung(t, err, "The history is judged by I5, and that does not come to its end.\nIt is running")
	if !strings.HasPrefix(said, "The history is judged") || !strings.Contains(said, ": It ") {
		t.Errorf("%q", said)
	}
}

// A part that takes long is given up, many that do not are not, however long they take together.
func TestEachPartHasItsTime(t *testing.T) {
	w := boundedWork{what: "The history is judged", most: 100}
	if err := w.run(func(step func(string)) {
		for range 8 {
			step("I1")
			for began := time.Now(); time.Since(began) < 20*tickInterval; {
				countDigits(1 << 40)
			}
		}
	}); err != nil {
		t.Error(err)
	}
}

func TestMemoryBesideARunIsNamed(t *testing.T) {
	var over atomic.Bool
	defer over.Store(true)
	runtime.GC() // what tests before have left is not live
	w := boundedWork{what: "The scenario is made", most: 1 << 30, memory: memoryGuard{atBegin: liveHeap(), allowed: 256 << 20}}
	requireHung(t, w.run(func(func(string)) { take(&over) }), "The scenario is made, and that takes memory without an end: ",
		"more are in use than at its beginning, and it may have 256 MiB", "\nIt is ") // running, or helping the garbage collector
}

// Garbage is no memory that is in use.
func TestGarbageIsNotInUse(t *testing.T) {
	runtime.GC()
	w := boundedWork{what: "The history is judged", most: 1 << 30, memory: memoryGuard{atBegin: liveHeap(), allowed: 1 << 30}}
	if err := w.run(func(func(string)) {
		for range 3 << 10 {
			sink.Store(new([1 << 20]byte))
		}
		sink.Store(nil)
	}); err != nil {
		t.Error(err)
	}
}

var sink atomic.Pointer[[1 << 20]byte]

func TestWhatEndsIsNoHang(t *testing.T) {
	done := false
	if err := RunBounded("The scenario is made", 0, nil, func(func(string)) { done = true }); err != nil || !done {
		t.Error(err, done)
	}
}

// The function that does not return is named, and not what it calls now and then.
func TestTheLoopIsTheInnermostCommonCall(t *testing.T) {
	const outer, loop, first, second = "a.outer", "a.loop", "a.first", "a.second"
	calls := func(names ...string) (all []frame) {
		for _, name := range names {
			all = append(all, frame{function: name})
		}
		return all
	}
	got := commonCalls(commonCalls(calls(first, loop, outer), calls(second, loop, outer)), calls(first, first, loop, outer))
	if len(got) != 2 || got[0].function != loop || got[1].function != outer {
		t.Errorf("%v", got)
	}
}
