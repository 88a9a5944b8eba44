// Package opening decides how long an attempt to connect may take, as a pure function of what was observed of it. It has no clock,
// no process and no timer: the attempt observes, asks, and observes again at the time that it is given.
//
//	state := opening.Begin(limits, now)
//	state, decision := state.Observe(limits, seen) // at decision.At, until decision.Over or the server is connected
//
// Guarantees:
//
//   - A server is given up when it was silent for Limits.Silence, and not before.
//   - Two things do not count as silence: time in which its processes wanted a processor and had none, and, for a runner of
//     packages (npx, uvx) that has sent no message yet, time in which its processes work.
//   - No attempt lasts longer than Limits.Most.
//   - With Limits.Exact, a person chose Silence: then it bounds the whole attempt, and observations do not count.
//
// Less formally: a slow first "npx -y" is not killed in the middle of its installation, forty servers that start on half a
// core do not time out together, and one that hangs is given up as early as ever.
//
// # How it fits
//
// The attempt of package actors owns the State: it calls Begin when the start gate has granted, and Observe from a timer. The
// package calls nothing of this module.
//
// Not promised: that a runner whose server burns a processor and answers nothing is distinguished from one that installs; such a
// server is given up after Most. Where the system reports nothing about processes, a runner has UnseenFactor times its Silence,
// and the time in which processes waited for a processor is not known.
//
// Public for the command: what it exports may change without notice.
package opening

import "time"

// The numbers of the decision.
const (
	// MaxAttempt is the default of Limits.Most: 10 min. A longer one lets a larger package be installed over a slow line, and
	// a server that burns a processor do so for longer.
	MaxAttempt = 10 * time.Minute
	// CheckEvery is the period in which a silent runner is observed: 2 s. One observation reads a few files of /proc for each process.
	CheckEvery = 2 * time.Second
	// FirstCheck is the time after which a silent process is observed first: 1.5 s. That is before the start gate takes its
	// slot back, and after most servers have answered.
	FirstCheck = 1500 * time.Millisecond
	// StarvedEvery is the period in which a process is observed that mostly waits for a processor: 1 s.
	StarvedEvery = time.Second
	// StarvedMost bounds the time of those observations: 20 s, as no slot is held for longer.
	StarvedMost = 20 * time.Second
	// InstallingAfter is the time of a runner's work that counts as an installation: 5 s. A package that is installed already
	// starts sooner than that on most machines.
	InstallingAfter = 5 * time.Second
	// UnseenFactor: a runner whose work cannot be observed gets Silence so many times over: 4, so 2 min.
	UnseenFactor = 4
	// MaxSilence bounds Grown: 5 min.
	MaxSilence = 5 * time.Minute
)

// The least work between two observations that counts: wanting a processor for a hundredth of the time, or 32 KiB/s read and
// written. A server that only waits, and wakes for its timers now and then, does less.
const (
	workShare = 100
	workBytes = 32 << 10
)

// Limits describe an attempt before it begins.
type Limits struct {
	// Silence is the longest time without a message of the server.
	Silence time.Duration
	// Most bounds the whole attempt.
	Most time.Duration
	// Process says that it has a child process, which can be observed. Runner says that the command fetches the program it runs.
	Process, Runner bool
	// Exact says that a person chose Silence.
	Exact bool
}

// Grown returns the silence that is allowed after so many attempts in a row that ended by it, because the same value would
// probably be exceeded again. It doubles each time up to MaxSilence, and is never less than base.
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

// Observation describes an attempt at one time.
type Observation struct {
	At time.Time
	// Heard is the time of the server's last message, zero if none has come.
	Heard time.Time
	// Seen says that the counters below could be read: what the processes have done since they began.
	Seen        bool
	CPU, Waited time.Duration
	Moved       uint64
	// Elsewhere says that a process which cannot be observed works for the server: a daemon fetches an image.
	Elsewhere bool
}

// State holds what matters between two observations. It is a value.
type State struct {
	// silentSince is the beginning of the silence that counts; grantTime moves it.
	startedAt, silentSince time.Time
	lastObserved           Observation
	// Installing says that a runner works, and its server has sent no message yet.
	Installing bool
	// Starved says that the processes spent most of the time between the last two observations waiting for a processor.
	Starved bool
	// Waited is the time that the processes waited for a processor, as far as that prolonged the attempt.
	Waited time.Duration
}

// Decision follows from an observation.
type Decision struct {
	// Over says that the attempt is given up. Otherwise it is to be observed again at At.
	Over bool
	At   time.Time
}

// Begin returns the state of an attempt that begins now, and when to observe it first.
func Begin(l Limits, now time.Time) (State, Decision) {
	s := State{startedAt: now, silentSince: now, lastObserved: Observation{At: now, Seen: true}}
	return s, s.nextDecision(l, now)
}

// Observe decides about an attempt that has not connected yet. An observation that is older than the last counts as simultaneous.
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

// grantTime moves the beginning of the silence by the time that did not count as silence.
func (s State) grantTime(l Limits, k Observation) State {
	passed := k.At.Sub(s.lastObserved.At)
	// Two observations close to each other see noise.
	span := max(passed, CheckEvery)
	var waited, cpu time.Duration
	var moved uint64
	if k.Seen && s.lastObserved.Seen {
		waited = min(max(k.Waited-s.lastObserved.Waited, 0), passed)
		cpu = max(k.CPU-s.lastObserved.CPU, 0)
		moved = max(k.Moved, s.lastObserved.Moved) - s.lastObserved.Moved
	}
	switch {
	// The server has sent its first message, so the runner is done: from then on its silence counts as any server's.
	case l.Runner && !k.Heard.IsZero() && s.lastObserved.Heard.IsZero():
		if k.Heard.After(s.silentSince) && !k.Heard.After(k.At) {
			s.silentSince = k.Heard
		}
	// The runner works: nothing of the time so far was silence.
	case l.Runner && k.Heard.IsZero() &&
		(k.Elsewhere || cpu+waited >= span/workShare || moved >= uint64(span/time.Millisecond)*workBytes/1000):
		s.silentSince = k.At
		s.Installing = s.Installing || k.At.Sub(s.startedAt) >= InstallingAfter
		return s
	// The runner cannot be observed: after some time an installation is the likeliest reason.
	case l.Runner && k.Heard.IsZero() && !k.Seen:
		s.Installing = s.Installing || k.At.Sub(s.startedAt) >= InstallingAfter
	}
	s.silentSince = s.silentSince.Add(waited)
	s.Waited += waited
	return s
}

// nextDecision returns whether the attempt is over, and otherwise when the next observation is due.
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
	// A silent process is also observed for the start gate, which wants to know whether the machine is overloaded.
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

// Lasted returns how long the attempt had taken at the last observation.
func (s State) Lasted() time.Duration { return s.lastObserved.At.Sub(s.startedAt) }

// SilentFor returns how long the server had been silent at the last observation, as far as that counts.
func (s State) SilentFor() time.Duration { return s.lastObserved.At.Sub(s.silentSince) }
