package restart

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Limits bound what the gate grants. Every field below 1 (or 1 ns) counts as the default, so the zero value is
// DefaultLimits(1).
type Limits struct {
	// Processes bounds the process starts that hold a slot; 4 for each processor. A start is CPU: more at once make every
	// one of them slower, until all miss their timeouts together; fewer leave the processors waiting for disks.
	Processes int
	// PerOrigin bounds the dials to one origin that hold a slot; 16. It is politeness: one host that serves a hundred
	// configured servers is not dialled a hundred times in one instant.
	PerOrigin int
	// Network bounds all dials that hold a slot; 64. It bounds handshakes and sockets, not CPU.
	Network int
	// InProcess bounds the in-process servers that hold a slot; 64.
	InProcess int
	// Hold is the longest time for a slot, not counting the time in which its process waited for a processor; 2 s. A shorter
	// one lets silent servers block less and slow ones overlap more.
	Hold time.Duration
	// UnansweredFactor × Processes is how many processes there may be that have neither answered nor closed; 8. It bounds
	// what servers that never answer cost until their connect timeout ends them, or until Displace passes their places on.
	UnansweredFactor int
	// Age is the wait after which a request rises by one class; 10 s. A longer one keeps the classes apart, a shorter one is fairer to
	// servers that have not been used yet.
	Age time.Duration
}

// DefaultLimits returns the limits for so many processors, usually runtime.GOMAXPROCS(0). Less than 1 counts as 1.
func DefaultLimits(procs int) Limits {
	return Limits{
		Processes: 4 * max(procs, 1), PerOrigin: 16, Network: 64, InProcess: 64,
		Hold: 2 * time.Second, UnansweredFactor: 8, Age: 10 * time.Second,
	}
}

// Validate returns an error that names every negative field, which must be a mistake, while zero means the default.
func (l Limits) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Processes", int64(l.Processes)}, {"PerOrigin", int64(l.PerOrigin)}, {"Network", int64(l.Network)},
		{"InProcess", int64(l.InProcess)}, {"Hold", int64(l.Hold)}, {"UnansweredFactor", int64(l.UnansweredFactor)},
		{"Age", int64(l.Age)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d and must not be negative", f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

// withDefaults replaces every field below 1 by its default.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits(1)
	for _, f := range []struct{ value, standard *int }{
		{&l.Processes, &d.Processes}, {&l.PerOrigin, &d.PerOrigin}, {&l.Network, &d.Network}, {&l.InProcess, &d.InProcess},
		{&l.UnansweredFactor, &d.UnansweredFactor},
	} {
		if *f.value < 1 {
			*f.value = *f.standard
		}
	}
	if l.Hold < 1 {
		l.Hold = d.Hold
	}
	if l.Age < 1 {
		l.Age = d.Age
	}
	return l
}

// Priority is the class in which a request waits. Higher goes first.
type Priority uint8

const (
	// Probe is the half-open probe of a parked server, and the first dial of a lazy server without a cache.
	Probe Priority = iota
	// Never is a server that has not connected yet.
	Never
	// Healthy is a server that was connected before, and so has probably been used.
	Healthy
	// Urgent is a server that a person or a call waits for.
	Urgent
)

// classes is the number of priorities.
const classes = int(Urgent) + 1

// String returns the class in one lower-case word.
func (p Priority) String() string {
	switch p {
	case Probe:
		return "probe"
	case Never:
		return "never"
	case Healthy:
		return "healthy"
	case Urgent:
		return "asked"
	}
	return "invalid"
}

// Request asks for the start of one server.
type Request struct {
	Server string
	// Kind decides which limit applies: Stdio is a process, SDK is in process, everything else is the network.
	Kind messages.TransportKind
	// Origin is scheme, host and port of a network server. Requests without one share only the limit of all dials.
	Origin string
	// Priority is the class at the beginning of the wait.
	Priority Priority
	// NotBefore is the time that the policy decided; zero means now.
	NotBefore time.Time
	// Displaces lets the request take the place of a silent process (Displace). Record.Displaces says whether it should.
	Displaces bool
	// Spared keeps the process that the request starts from being displaced, because the one before it was.
	Spared bool
}
