// Package opening decides how long an attempt to connect may go on, as a pure function of what was seen of it. It has no clock,
// no process and no timer: the attempt looks, asks, and looks again when it is told to.
//
//	state := opening.Begin(limits, now)
//	state, verdict := state.Look(limits, look) // at verdict.At, until verdict.Over or the server is connected
//
// Guarantees:
//
//   - A server is given up when it was silent for Limits.Silence, and never before.
//   - What is no silence: time in which its processes wanted a processor and had none, and, for a runner of packages
//     (npx, uvx) that has not said anything yet, time in which its processes work.
//   - No attempt lasts longer than Limits.Most.
//   - Limits.Exact is the person's word: then Silence is the whole attempt, whatever is seen.
//
// Less formally: a slow first "npx -y" is not killed in the middle of its installation, forty servers that start on half a
// core do not time out together, and one that has hung is given up as early as ever.
//
// Not promised: that a runner whose server burns a processor and answers nothing is told from one that installs; such a
// server is given up after Most. Where the system tells nothing of processes, a runner has Unseen times its Silence, and
// nothing is known of who waited for a processor.
package opening

import "time"

// Numbers of the decision.
const (
	// Most is the default of Limits.Most: 10 min. A longer one lets a larger package be installed over a slow line, and
	// a server that burns a processor do so for longer.
	Most = 10 * time.Minute
	// Every is how often a runner that says nothing is looked at: 2 s. A look reads a few files of /proc for each process.
	Every = 2 * time.Second
	// Early is when a process that has not said anything is looked at first: 1.5 s. That is before the start gate takes its
	// slot back, and after most servers have answered.
	Early = 1500 * time.Millisecond
	// Again is how often it is looked at as long as it mostly waits for a processor: 1 s.
	Again = time.Second
	// Slotted is how long that goes on at most: 20 s, as no slot is held for longer.
	Slotted = 20 * time.Second
	// Settling is how long a runner may work before that is called installing: 5 s. A package that is installed already
	// starts sooner than that on most machines.
	Settling = 5 * time.Second
	// Unseen times Silence is what a runner has where its work cannot be seen: 4, so 2 min.
	Unseen = 4
	// Longest is how far Grown goes: 5 min.
	Longest = 5 * time.Minute
)

// What counts as work between two looks: wanting a processor for a hundredth of the time, or 32 KiB/s read and written. A
// server that only waits, and looks at its watch now and then, does less.
const (
	workShare = 100
	workBytes = 32 << 10
)

// Limits are what is known of an attempt before it begins.
type Limits struct {
	// Silence is how long the server may say nothing.
	Silence time.Duration
	// Most bounds the whole attempt.
	Most time.Duration
	// Process says that it is one of ours, which can be seen. Runner says that the command fetches what it runs.
	Process, Runner bool
	// Exact says that a person chose Silence.
	Exact bool
}

// Grown is the silence that is allowed after so many attempts in a row that ended by it: a bound that was hit is not hit
// again at the same value. It doubles each time up to Longest, and is never less than base.
func Grown(base time.Duration, timeouts int) time.Duration {
	grown := base
	for range timeouts {
		if grown >= Longest/2 {
			return max(base, Longest)
		}
		grown *= 2
	}
	return grown
}

// Look is what was seen of an attempt at a time.
type Look struct {
	At time.Time
	// Heard is when the server said something, zero if it has not yet.
	Heard time.Time
	// Seen says that the counters are those of its processes: what they have done since they began.
	Seen        bool
	CPU, Waited time.Duration
	Moved       uint64
	// Elsewhere says that others work for it, who cannot be seen: a daemon fetches an image.
	Elsewhere bool
}

// State is what is kept between two looks.
type State struct {
	begun, quiet time.Time // quiet is when the silence began that counts
	last         Look
	// Installing says that a runner works, and its server has not said anything.
	Installing bool
	// Starved says that its processes spent most of the time between the last two looks waiting for a processor.
	Starved bool
	// Waited is how long the processes wanted a processor in vain, as far as that prolonged the attempt.
	Waited time.Duration
}

// Verdict is what follows.
type Verdict struct {
	// Over says that the attempt is given up. Otherwise it is to be looked at again at At.
	Over bool
	At   time.Time
}

// Begin is the state of an attempt that begins, and when to look at it first.
func Begin(l Limits, now time.Time) (State, Verdict) {
	s := State{begun: now, quiet: now, last: Look{At: now, Seen: true}}
	return s, s.next(l, now)
}

// Look decides about an attempt that has not connected yet.
func (s State) Look(l Limits, k Look) (State, Verdict) {
	if k.At.Before(s.last.At) {
		k.At = s.last.At
	}
	s.Starved = k.Seen && s.last.Seen && k.At.After(s.last.At) && k.Waited-s.last.Waited > k.At.Sub(s.last.At)/2
	if !l.Exact {
		s = s.grant(l, k)
	}
	s.last = k
	return s, s.next(l, k.At)
}

// grant moves the beginning of the silence by what was none.
func (s State) grant(l Limits, k Look) State {
	passed := k.At.Sub(s.last.At)
	span := max(passed, Every) // two looks that follow each other closely see noise
	var waited, cpu time.Duration
	var moved uint64
	if k.Seen && s.last.Seen {
		waited = min(max(k.Waited-s.last.Waited, 0), passed)
		cpu = max(k.CPU-s.last.CPU, 0)
		moved = max(k.Moved, s.last.Moved) - s.last.Moved
	}
	switch {
	case l.Runner && !k.Heard.IsZero() && s.last.Heard.IsZero():
		if k.Heard.After(s.quiet) && !k.Heard.After(k.At) {
			s.quiet = k.Heard // the server runs: what follows is as for any other
		}
	case l.Runner && k.Heard.IsZero() &&
		(k.Elsewhere || cpu+waited >= span/workShare || moved >= uint64(span/time.Millisecond)*workBytes/1000):
		s.quiet = k.At
		s.Installing = s.Installing || k.At.Sub(s.begun) >= Settling
		return s
	case l.Runner && k.Heard.IsZero() && !k.Seen:
		s.Installing = s.Installing || k.At.Sub(s.begun) >= Settling
	}
	s.quiet = s.quiet.Add(waited)
	s.Waited += waited
	return s
}

func (s State) next(l Limits, now time.Time) Verdict {
	silence := l.Silence
	if l.Runner && !l.Exact && !s.last.Seen && s.last.Heard.IsZero() {
		silence *= Unseen
	}
	end := s.quiet.Add(silence)
	if most := s.begun.Add(max(l.Most, l.Silence)); !l.Exact && end.After(most) {
		end = most
	}
	at := end
	if l.Runner && !l.Exact && s.last.Heard.IsZero() {
		at = earlier(at, s.begun.Add(now.Sub(s.begun).Truncate(Every)+Every))
	}
	if s.last.Heard.IsZero() && l.Process {
		switch lasted := now.Sub(s.begun); {
		case lasted < Early:
			at = earlier(at, s.begun.Add(Early))
		case s.Starved && lasted < Slotted:
			at = earlier(at, now.Add(Again))
		}
	}
	return Verdict{Over: !now.Before(end), At: at}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Lasted is how long the attempt had gone on at the last look.
func (s State) Lasted() time.Duration { return s.last.At.Sub(s.begun) }

// Quiet is how long the server was silent at the last look.
func (s State) Quiet() time.Duration { return s.last.At.Sub(s.quiet) }
