package scenario

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// Plan is a scenario resolved with a seed. Only the draws of the servers and of the manager are left to chance, each
// from a source that is derived from Seed and a name. All times count from the start of the run.
type Plan struct {
	Scenario Scenario `json:"scenario"`
	Seed     uint64   `json:"seed"`
	Tier     Tier     `json:"tier"`

	// Servers is sorted by name; faults and commands are sorted by time.
	Servers  []Server         `json:"servers"`
	Faults   []PlannedFault   `json:"faults"`
	Commands []PlannedCommand `json:"commands"`
	Load     []PlannedLoad    `json:"load"`
	Agents   []PlannedAgent   `json:"agents,omitempty"`

	// Heal is the time at which every fault has ended; at End every server must be well, and the manager is closed.
	Heal time.Duration `json:"heal"`
	End  time.Duration `json:"end"`

	// Policy, Limits and the rest are the configuration of the manager, with every default filled in. The checks of the
	// invariants compute with these numbers by their own arithmetic.
	Policy        restart.Policy `json:"policy"`
	Limits        restart.Limits `json:"limits"`
	WithdrawAfter time.Duration  `json:"withdrawAfter"`
	CallWait      time.Duration  `json:"callWait"`
	ProbeEvery    time.Duration  `json:"probeEvery"`   // 15 s if not said
	ProbeTimeout  time.Duration  `json:"probeTimeout"` // 10 s
	ProbeStrikes  int            `json:"probeStrikes"` // 3
	Quiet         time.Duration  `json:"quiet"`        // 50 ms
	MaxWait       time.Duration  `json:"maxWait"`      // 1 s
}

// Server is one server of a plan, with defaults filled in.
type Server struct {
	Name  string                 `json:"name"`
	Group string                 `json:"group"`
	Kind  messages.TransportKind `json:"kind"`
	Era   messages.Era           `json:"era"`
	Tools int                    `json:"tools"`
	Pages int                    `json:"pages"`
	// Start and Latency are means; each value is drawn around them.
	Start          time.Duration    `json:"start"`
	Latency        time.Duration    `json:"latency"`
	Trusted        bool             `json:"trusted,omitempty"`
	Disabled       bool             `json:"disabled,omitempty"`
	Connect        messages.Connect `json:"connect,omitempty"`
	ConnectTimeout time.Duration    `json:"connectTimeout"` // 30 s
	// NoConnectTimeout says that the spec names none; ConnectTimeout is then the longest that the manager allows by itself, 5 min.
	NoConnectTimeout bool `json:"noConnectTimeout,omitempty"`

	CallTimeout    time.Duration `json:"callTimeout"` // 60 s
	MaxCallTimeout time.Duration `json:"maxCallTimeout,omitempty"`
	IdleTimeout    time.Duration `json:"idleTimeout,omitempty"`
	MaxInFlight    int           `json:"maxInFlight,omitempty"`
	MaxQueued      int           `json:"maxQueued,omitempty"`
	Tasks          string        `json:"tasks,omitempty"`
	Offers         bool          `json:"offers,omitempty"`
	Lacks          string        `json:"lacks,omitempty"`
	Headers        bool          `json:"headers,omitempty"`
	Logs           bool          `json:"logs,omitempty"`
	OneHost        bool          `json:"oneHost,omitempty"`
	Web            string        `json:"web,omitempty"`
	Renews         bool          `json:"renews,omitempty"`
	Personal       bool          `json:"personal,omitempty"`
	Pin            string        `json:"pin,omitempty"`
	// Denied holds the tools that are not offered since the last adjust.
	Denied []string `json:"denied,omitempty"`
	// Refused are the tools that a rule denies, since a permit has said so.
	Refused []string `json:"refused,omitempty"`
}

// PlannedFault is one fault on one server (on the machine if Server is empty), from Begin to End. ID counts from 1 in
// the order of the plan.
type PlannedFault struct {
	ID     int               `json:"id"`
	Fault  string            `json:"fault"`
	With   map[string]string `json:"with,omitempty"`
	Server string            `json:"server,omitempty"`
	Begin  time.Duration     `json:"begin"`
	End    time.Duration     `json:"end"`
}

// PlannedCommand is one command about one server; Server is empty for those about the whole manager. ID counts from 1 in the order
// of the plan.
type PlannedCommand struct {
	ID     int           `json:"id"`
	Do     string        `json:"do"`
	Server string        `json:"server,omitempty"`
	At     time.Duration `json:"at"`
	// With holds the values that an adjust or a permit changes.
	With map[string]string `json:"with,omitempty"`
	// Only holds the servers that remain after a configure; nil means the whole set, unchanged.
	Only []string `json:"only,omitempty"`
}

// ChangesSet reports whether a command adds, changes or removes a server. With Manager.Configured it goes to the manager as a set of servers.
func (o PlannedCommand) ChangesSet() bool {
	return slices.Contains([]string{"add", "remove", "respec", "adjust"}, o.Do)
}

// BySet reports whether a command goes to the manager as a set of servers instead of a command about one: every second
// adjust, so that both ways are tried.
func (o PlannedCommand) BySet() bool { return o.Do == "adjust" && o.ID%2 == 0 }

// PlannedLoad describes the calls to one server. The runner draws the arrivals from the seed, the server's name and the
// stream's index in the plan.
type PlannedLoad struct {
	Server  string        `json:"server"`
	Tool    string        `json:"tool"`
	Read    string        `json:"read,omitempty"`
	Rate    float64       `json:"rate"`
	Timeout time.Duration `json:"timeout,omitempty"`
	Size    int           `json:"size,omitempty"`
	Callers int           `json:"callers,omitempty"`
	Task    bool          `json:"task,omitempty"`
	Cancel  float64       `json:"cancel,omitempty"`
	Begin   time.Duration `json:"begin"`
	End     time.Duration `json:"end"`
	// Together is how many of the calls begin in one instant, 0 for one.
	Together int `json:"together,omitempty"`
}

// PlannedAgent is one agent of a gateway. The runner draws what it does from the seed and its name.
type PlannedAgent struct {
	Name string       `json:"name"`
	As   string       `json:"as"`
	Era  messages.Era `json:"era"`
	Over string       `json:"over"`
	View string       `json:"view,omitempty"`
	// Within are the views that follow each other, in the order of their times. Held names the view to the gateway, empty for none.
	Within  []View        `json:"within,omitempty"`
	Held    string        `json:"held,omitempty"`
	Through string        `json:"through,omitempty"`
	Rate    float64       `json:"rate"`
	Begin   time.Duration `json:"begin"`
	End     time.Duration `json:"end"`
}
