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
	// MaxAttempt is the default of Limits.Most: 10 min. A longer one lets a larger package be installed over a slow line, and
	// a server that burns a processor do so for longer.
	MaxAttempt = 10 * time.Minute
	// CheckEvery is how often a runner that says nothing is looked at: 2 s. A look reads a few files of /proc for each process.
	CheckEvery = 2 * time.Second
	// FirstCheck is when a process that has not said anything is looked at first: 1.5 s. That is before the start gate takes its
	// slot back, and after most servers have answered.
	FirstCheck = 1500 * time.Millisecond
	// StarvedEvery is how often it is looked at as long as it mostly waits for a processor: 1 s.
	StarvedEvery = time.Second
	// StarvedMost is how long that goes on at most: 20 s, as no slot is held for longer.
	StarvedMost = 20 * time.Second
	// InstallingAfter is how long a runner may work before that is called installing: 5 s. A package that is installed already
	// starts sooner than that on most machines.
	InstallingAfter = 5 * time.Second
	// UnseenFactor times Silence is what a runner has where its work cannot be seen: 4, so 2 min.
	UnseenFactor = 4
	// MaxSilence is how far Grown goes: 5 min.
	MaxSilence = 5 * time.Minute
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
		if grown >= MaxSilence/2 {
			return max(base, MaxSilence)
		}
		grown *= 2
	}
	return grown
}

// Observation is what was seen of an attempt at a time.
type Observation struct {
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
	startedAt, silentSince time.Time // quiet is when the silence began that counts
	lastObserved           Observation
	// Installing says that a runner works, and its server has not said anything.
	Installing bool
	// Starved says that its processes spent most of the time between the last two looks waiting for a processor.
	Starved bool
	// Waited is how long the processes wanted a processor in vain, as far as that prolonged the attempt.
	Waited time.Duration
}

// Decision is what follows.
type Decision struct {
	// Over says that the attempt is given up. Otherwise it is to be looked at again at At.
	Over bool
	At   time.Time
}

// Begin is the state of an attempt that begins, and when to look at it first.
func Begin(l Limits, now time.Time) (State, Decision) {
	s := State{startedAt: now, silentSince: now, lastObserved: Observation{At: now, Seen: true}}
	return s, s.nextDecision(l, now)
}

// Observe decides about an attempt that has not connected yet.
func (s State) Observe(l Limits, k Observation) (State, Decision) {
	if k.At.Before(s.lastObserved.At) {
		k.At = s.lastObserved.At
	}
	s.Starved = k.Seen && s.lastObserved.Seen && k.At.After(s.lastObserved.At) && k.Waited-s.lastObserved.Waited > k.At.Sub(s.lastObserved.At)/2
	if !l.Exact {
		s = s.grantTime(l, k)
	}
	s.lastObserved = k
	return s, s.nextDecision(l, k.At)
}

// grantTime moves the beginning of the silence by what was none.
func (s State) grantTime(l Limits, k Observation) State {
	passed := k.At.Sub(s.lastObserved.At)
	span := max(passed, CheckEvery) // two looks that follow each other closely see noise
	var waited, cpu time.Duration
	var moved uint64
	if k.Seen && s.lastObserved.Seen {
		waited = min(max(k.Waited-s.lastObserved.Waited, 0), passed)
		cpu = max(k.CPU-s.lastObserved.CPU, 0)
		moved = max(k.Moved, s.lastObserved.Moved) - s.lastObserved.Moved
	}
	switch {
	case l.Runner && !k.Heard.IsZero() && s.lastObserved.Heard.IsZero():
		if k.Heard.After(s.silentSince) && !k.Heard.After(k.At) {
			s.silentSince = k.Heard // the server runs: what follows is as for any other
		}
	case l.Runner && k.Heard.IsZero() &&
		(k.Elsewhere || cpu+waited >= span/workShare || moved >= uint64(span/time.Millisecond)*workBytes/1000):
		s.silentSince = k.At
		s.Installing = s.Installing || k.At.Sub(s.startedAt) >= InstallingAfter
		return s
	case l.Runner && k.Heard.IsZero() && !k.Seen:
		s.Installing = s.Installing || k.At.Sub(s.startedAt) >= InstallingAfter
	}
	s.silentSince = s.silentSince.Add(waited)
	s.Waited += waited
	return s
}

func (s State) nextDecision(l Limits, now time.Time) Decision {
	silence := l.Silence
	if l.Runner && !l.Exact && !s.lastObserved.Seen && s.lastObserved.Heard.IsZero() {
		silence *= UnseenFactor
	}
	end := s.silentSince.Add(silence)
	if most := s.startedAt.Add(max(l.Most, l.Silence)); !l.Exact && end.After(most) {
		end = most
	}
	at := end
	if l.Runner && !l.Exact && s.lastObserved.Heard.IsZero() {
		at = earlierOf(at, s.startedAt.Add(now.Sub(s.startedAt).Truncate(CheckEvery)+CheckEvery))
	}
	if s.lastObserved.Heard.IsZero() && l.Process {
		switch lasted := now.Sub(s.startedAt); {
		case lasted < FirstCheck:
			at = earlierOf(at, s.startedAt.Add(FirstCheck))
		case s.Starved && lasted < StarvedMost:
			at = earlierOf(at, now.Add(StarvedEvery))
		}
	}
	return Decision{Over: !now.Before(end), At: at}
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Lasted is how long the attempt had gone on at the last look.
func (s State) Lasted() time.Duration { return s.lastObserved.At.Sub(s.startedAt) }

// SilentFor is how long the server was silent at the last look.
func (s State) SilentFor() time.Duration { return s.lastObserved.At.Sub(s.silentSince) }
