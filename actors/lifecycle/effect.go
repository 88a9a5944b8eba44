package lifecycle

// Effect is an order to the server's actor, which performs the effects in the order of the slice.
type Effect interface{ isEffect() }

// Urgency orders the starts that servers request.
type Urgency uint8

const (
	// Background is for a lazy server that is dialled once to learn its tools.
	Background Urgency = iota
	// Normal is for a server that should connect by itself. The supervisor raises it for one that was healthy before.
	Normal
	// Person is for a start that a command or a call waits for.
	Person
)

// String returns the name for transcripts and logs.
func (u Urgency) String() string { return [...]string{"background", "normal", "person"}[u] }

// Messages to the supervisor.
type (
	// Ask requests a start as soon as the gate has a slot: Granted follows. Fresh forgets the failures before.
	Ask struct {
		Urgency Urgency
		Fresh   bool
	}
	// Unask takes back every Ask and every scheduled start. A grant that is on its way is declined.
	Unask struct{}
	// Report says that an attempt or a connection failed, and requests another start: Scheduled follows. Up: it had been connected.
	Report struct {
		Epoch uint64
		Cause Cause
		Up    bool
	}
	// Answer frees the slot of the start gate: the handshake was answered. An attempt that ends before keeps its slot until
	// it is Closed, because until then its process may still be there.
	Answer struct{ Epoch uint64 }
	// Install says that the attempt waits for an installation: it needs no slot, and must not be displaced by other servers.
	Install struct{ Epoch uint64 }
	// Up says that the attempt reached connected: the restart policy counts its health from now.
	Up struct{ Epoch uint64 }
	// Decline returns a grant that came too late, so that its slot is freed.
	Decline struct{ Epoch uint64 }
	// Gone says that the server has ended for ever; the supervisor stops the actor.
	Gone struct{}
)

// Work on the connection. The actor answers each with an event of the same epoch, within a bound.
type (
	// Dial opens the connection: Dialed or Failed.
	Dial struct{ Epoch uint64 }
	// Greet performs the handshake: Greeted or Failed.
	Greet struct{ Epoch uint64 }
	// List requests the tools: Listed or, for the first list, Failed, else ListFailed.
	List struct {
		Epoch uint64
		First bool
	}
	// Coalesce begins or prolongs the quiet period before the next list: RelistDue. Failures counts the lists in a row that
	// failed; a higher number makes the period longer.
	Coalesce struct {
		Epoch    uint64
		Failures int
	}
	// Shut ends the connection: Closed. With Drain the admitted calls may finish first, within a bound.
	Shut struct {
		Epoch uint64
		Drain bool
	}
)

// Messages to the registry, and orders to the admission gate, which must never admit calls to hidden tools.
type (
	// Show opens a gate and announces the tools.
	Show struct{ Epoch, Rev uint64 }
	// Update announces a changed list; the open gate stays.
	Update struct{ Epoch, Rev uint64 }
	// Lose closes the gate and marks the tools lost: they may come back soon.
	Lose struct{ Epoch, Rev uint64 }
	// Withdraw closes the gate and removes the tools from the catalog.
	Withdraw struct{ Epoch, Rev uint64 }
	// Rest closes the gate, if one is open, and shows the known tools as cached: a call of one wakes the server.
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
