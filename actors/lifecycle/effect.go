package lifecycle

// Effect is something that the shell must do, in the order of the slice.
type Effect interface{ isEffect() }

// Urgency orders the starts that servers ask for.
type Urgency uint8

const (
	// Background is a lazy server that is dialled once to learn its tools.
	Background Urgency = iota
	// Normal is a server that never connected.
	Normal
	// Person is a start that somebody waits for.
	Person
)

// String is for transcripts and logs.
func (u Urgency) String() string { return [...]string{"background", "normal", "person"}[u] }

// Words to the supervisor.
type (
	// Ask asks for a start as soon as the gate has a slot. Fresh forgets the failures before.
	Ask struct {
		Urgency Urgency
		Fresh   bool
	}
	// Unask takes back every Ask and every scheduled start.
	Unask struct{}
	// Report tells that an attempt or a connection failed and asks to start again. Up: it had been connected.
	Report struct {
		Epoch uint64
		Cause Cause
		Up    bool
	}
	// Answer frees the slot of the start gate: the handshake was answered. An attempt that ends before keeps its slot until
	// it is Closed, because until then its process may still be there.
	Answer struct{ Epoch uint64 }
	// Install tells that the attempt waits for an installation: it needs no slot, and must not be ended for others.
	Install struct{ Epoch uint64 }
	// Up tells that the attempt reached connected.
	Up struct{ Epoch uint64 }
	// Decline returns a grant that came too late.
	Decline struct{ Epoch uint64 }
	// Gone tells that the server has ended for ever; the actor stops.
	Gone struct{}
)

// Work on the connection. The shell answers each with an event of the same epoch.
type (
	// Dial opens the connection: Dialed or Failed.
	Dial struct{ Epoch uint64 }
	// Greet performs the handshake: Greeted or Failed.
	Greet struct{ Epoch uint64 }
	// List asks for the tools: Listed or, for the first list, Failed, else ListFailed.
	List struct {
		Epoch uint64
		First bool
	}
	// Coalesce begins or prolongs the quiet period before a re-list: RelistDue. Failures > 0 waits longer, as it is the
	// number of re-lists that failed in a row.
	Coalesce struct {
		Epoch    uint64
		Failures int
	}
	// Shut ends the connection: Closed. Drain lets admitted calls finish first, within a bound.
	Shut struct {
		Epoch uint64
		Drain bool
	}
)

// Words to the registry, and to the admission gate that belongs to them.
type (
	// Show opens a gate and announces the tools.
	Show struct{ Epoch, Rev uint64 }
	// Update announces a changed list through the gate that is open.
	Update struct{ Epoch, Rev uint64 }
	// Lose closes the gate and marks the tools lost: they may come back soon.
	Lose struct{ Epoch, Rev uint64 }
	// Withdraw closes the gate and takes the tools away.
	Withdraw struct{ Epoch, Rev uint64 }
	// Rest closes the gate, if one is open, and shows the tools that are known as cached: their use wakes the server.
	Rest struct{ Epoch, Rev uint64 }
)

func (Ask) isEffect()      {}
func (Unask) isEffect()    {}
func (Report) isEffect()   {}
func (Answer) isEffect()   {}
func (Install) isEffect()  {}
func (Up) isEffect()       {}
func (Decline) isEffect()  {}
func (Gone) isEffect()     {}
func (Dial) isEffect()     {}
func (Greet) isEffect()    {}
func (List) isEffect()     {}
func (Coalesce) isEffect() {}
func (Shut) isEffect()     {}
func (Show) isEffect()     {}
func (Update) isEffect()   {}
func (Lose) isEffect()     {}
func (Withdraw) isEffect() {}
func (Rest) isEffect()     {}
