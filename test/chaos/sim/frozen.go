package sim

import (
	"path"
	"slices"
	"strings"
	"time"
)

// FrozenError says that the time of a bubble stands still: one of its goroutines waits for a mutex, or for something outside of the
// bubble, while all others wait for time to pass. Its goroutines still exist.
type FrozenError struct {
	// Waiter says which goroutine waits and for what; Holder which one probably holds the mutex, empty if that is not known.
	Waiter, Holder string
}

// Error implements error.
func (e *FrozenError) Error() string {
	text := "virtual time stands still: " + e.Waiter
	if e.Holder != "" {
		text += "; " + e.Holder
	}
	return text
}

const (
	// frozenLook is the time between two looks at the goroutines of a bubble. They must be the same at mutexLooks looks in a row, and
	// where something outside may still answer, at outsideLooks.
	frozenLook   = 100 * time.Millisecond
	mutexLooks   = 8
	outsideLooks = 20
)

// BubbleUntilFrozen is [Bubble] for functions of other people, which may hold a mutex while they wait for time to pass, or wait for what
// is outside of the bubble. It returns a *FrozenError then, within seconds.
func BubbleUntilFrozen(f func()) error {
	return runWatched(f, func(ended <-chan error, mark func() string) error {
		timer := time.NewTicker(frozenLook)
		defer timer.Stop()
		last, same := "", 0
		for {
			select {
			case err := <-ended:
				return err
			case <-timer.C:
			}
			in := goroutinesIn(mark())
			now, frozen := describeFrozen(in)
			if same++; now == "" || now != last {
				last, same = now, 1
			}
			if now == "" || same < mutexLooks || same < outsideLooks && !slices.ContainsFunc(in, goroutine.awaitsMutex) {
				continue
			}
			select {
			case err := <-ended: // it ended while the stacks were taken
				return err
			default:
				return frozen
			}
		}
	})
}

// briefStates are those in which a goroutine waits for the runtime alone, which on a busy machine may take long.
var briefStates = []string{"preempted", "waiting", "copystack", "dead"}

// describeFrozen returns what a bubble waits for whose time stands still, also as a text that is the same at the next look. The text is
// empty if a goroutine runs, or if time can pass.
func describeFrozen(in []goroutine) (text string, frozen *FrozenError) {
	var stops *goroutine
	for i, g := range in {
		switch {
		case g.isRunning(), slices.Contains(briefStates, g.state), strings.HasPrefix(g.state, "GC "):
			return "", nil
		case g.durable, strings.HasPrefix(g.state, "synctest."):
		default:
			text += g.state + " " + g.firstFrame().String() + "\n"
			if stops == nil || !stops.awaitsMutex() && g.awaitsMutex() {
				stops = &in[i]
			}
		}
	}
	if stops == nil {
		return "", nil
	}
	at := stops.firstFrame()
	if !stops.awaitsMutex() {
		return text, &FrozenError{Waiter: at.String() + " waits for what is outside of the bubble (" + stops.state + ")"}
	}
	frozen = &FrozenError{Waiter: at.String() + " waits for a mutex"}
	for _, g := range in {
		if i := slices.IndexFunc(g.frames, func(f frame) bool { return f.receiverType() == at.receiverType() && at.receiverType() != "" }); i >= 0 && !g.awaitsMutex() {
			frozen.Holder = "probably " + shortFrame(g.frames[i]).String() + " holds it, which waits in " + g.firstFrame().String()
			break
		}
	}
	return text, frozen
}

// firstFrame returns the innermost call outside of the runtime and of package sync.
func (g goroutine) firstFrame() frame {
	for _, f := range g.frames {
		if !strings.HasPrefix(f.function, "sync.") && !strings.HasPrefix(f.function, "internal/") && !strings.HasPrefix(f.function, "runtime.") {
			return shortFrame(f)
		}
	}
	return frame{function: "a goroutine", position: "?"}
}

// shortFrame leaves of the path of a function what a reader knows it by.
func shortFrame(f frame) frame {
	f.function = path.Base(f.function)
	return f
}
