// Package scenario is the language in which a day of faults is written down: which servers there are, what breaks when,
// which calls are made meanwhile, and which invariants must hold. One scenario runs in virtual time and on real
// processes.
//
//	s, err := scenario.Parse("bad.yaml", text)      // or scenario.Named("flapping"), or a literal
//	plan, err := s.Plan(42, scenario.Sim)           // what happens exactly, by the seed 42
//
// A person, or package generate, writes a [Scenario]. Its method Plan resolves it with a seed into the exact course of
// events: every server by name, every fault with its begin and end. The same scenario and seed give the same plan on
// every machine; another version of this package may give another plan for a seed. Faults of a scenario are reported
// with their places in the file, all at once.
//
// # How it fits
//
// The command chaos parses a scenario and plans it; package sim or live runs the plan, and package invariant judges the
// history with the numbers in it. This package calls transports/fault for the catalogue of faults and
// supervisor/restart for the defaults of the manager. It is pure and owns no state.
//
// The scenarios of the Library are files of this package that can be printed, copied and changed. The format has a JSON
// Schema for editors, which a test generates from the types in this file and their comments.
package scenario

import (
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Tier names one of the two worlds in which a scenario runs.
type Tier string

const (
	// Sim is virtual time: the real manager over servers in memory.
	Sim Tier = "sim"
	// Real is real processes and sockets on this machine's loopback.
	Real Tier = "real"
)

// Scenario is one bad day. The zero value of a field has the default that its comment names.
type Scenario struct {
	// Name is a word for files and reports; About one sentence on what is tried and what must be seen.
	Name  string `json:"name" yaml:"name"`
	About string `json:"about,omitempty" yaml:"about,omitempty"`
	// Seed is used unless the run is given another one; 1.
	Seed uint64 `json:"seed,omitempty" yaml:"seed,omitempty"`
	// Tiers names the worlds in which it can run; empty: both.
	Tiers []Tier `json:"tiers,omitempty" yaml:"tiers,omitempty,flow"`
	// Duration bounds the time in which things break; then every fault ends and the servers are healed. 10 min in Sim, 20 s in Real.
	Duration messages.Duration `json:"duration,omitempty" yaml:"duration,omitempty"`
	// Settle bounds the time in which the healed world has to be well again; 0: what I11 allows.
	Settle messages.Duration `json:"settle,omitempty" yaml:"settle,omitempty"`

	Servers  []Group   `json:"servers" yaml:"servers"`
	Faults   []Fault   `json:"faults,omitempty" yaml:"faults,omitempty"`
	Commands []Command `json:"commands,omitempty" yaml:"commands,omitempty"`
	Load     []Load    `json:"load,omitempty" yaml:"load,omitempty"`
	Agents   []Agents  `json:"agents,omitempty" yaml:"agents,omitempty"`
	Manager  Manager   `json:"manager,omitzero" yaml:"manager,omitempty"`

	// Invariants are those that are judged ("I1" …); empty: all.
	Invariants []string `json:"invariants,omitempty" yaml:"invariants,omitempty,flow"`
	// Sometimes names what must have happened at least once, beside every fault: "park", "probe-success",
	// "disabled-while-connecting", "retry-after", "withdrawn", "replayed", "stable-reset".
	Sometimes []string `json:"sometimes,omitempty" yaml:"sometimes,omitempty,flow"`
}

// Group is some servers that are alike.
type Group struct {
	// Name is the server's id, or with Count > 1 what the ids begin with: web-000, web-001, …
	Name  string `json:"name" yaml:"name"`
	Count int    `json:"count,omitempty" yaml:"count,omitempty"` // 1
	// Kind is stdio (the default), http, sse, websocket or sdk.
	Kind messages.TransportKind `json:"kind,omitempty" yaml:"kind,omitempty"`
	// Era is legacy (the default) or modern: what the server speaks. The manager is not told.
	Era messages.Era `json:"era,omitempty" yaml:"era,omitempty"`
	// Tools counts the tools that it lists, read, write and put among them; 3. Pages counts the pages of that list; 1.
	Tools int `json:"tools,omitempty" yaml:"tools,omitempty"`
	Pages int `json:"pages,omitempty" yaml:"pages,omitempty"`
	// Start is the time from the opening to the answer of the handshake; 20 ms. Latency is that of every other answer; 2 ms.
	// Both vary by a half.
	Start   messages.Duration `json:"start,omitempty" yaml:"start,omitempty"`
	Latency messages.Duration `json:"latency,omitempty" yaml:"latency,omitempty"`
	// Tasks is "optional" or "required": a call of its tools can, or must, run as a task, which the caller asks after until it
	// has ended. Empty: it knows no tasks. A modern server makes a task of every other call if it is optional.
	Tasks string `json:"tasks,omitempty" yaml:"tasks,omitempty"`
	// Offers: it has resources, prompts and completion as well, and one of the legacy era asks its caller something in every third
	// call: the person, the model, or where it may work.
	Offers bool `json:"offers,omitempty" yaml:"offers,omitempty"`
	// Lacks names what a server that offers does not declare and does not have, with commas between: resources, prompts, completions, subscribe,
	// resourceChanges or promptChanges (the announcements of their changes).
	Lacks string `json:"lacks,omitempty" yaml:"lacks,omitempty"`
	// Headers: its tools want their arguments in headers as well (x-mcp-header), by other names whenever its list changes, and
	// one of them as no server may. It counts over http in the modern era.
	Headers bool `json:"headers,omitempty" yaml:"headers,omitempty"`
	// Logs: it writes log messages of several levels about its calls, as far as its client wants them.
	Logs bool `json:"logs,omitempty" yaml:"logs,omitempty"`
	// OneHost: the servers of the group have one host, of which the manager dials only so many at a time. It counts in simulations, over the
	// network.
	OneHost bool `json:"oneHost,omitempty" yaml:"oneHost,omitempty"`
	// Web is plain or numbered: the manager reaches it with its own HTTP client (package transports/web), where other servers over http
	// have a model of it. One that is numbered numbers the events of its streams, so that a stream which breaks is resumed: it sends again
	// what was missed, says when to come back, and refuses a resumption now and then. It counts in simulations, over http.
	Web string `json:"web,omitempty" yaml:"web,omitempty"`
	// Renews: after it has refused its credentials (the fault unauthorized), others appear by themselves, some seconds after the fault, as a sign-in
	// by another process brings them. It counts in simulations, over http and sse.
	Renews bool `json:"renews,omitempty" yaml:"renews,omitempty"`
	// Personal: callers with a name (of loads with callers) have credentials of their own, and the server refuses those of the second one of each
	// load. It needs web.
	Personal bool `json:"personal,omitempty" yaml:"personal,omitempty"`
	// NoConnectTimeout: its spec names no connectTimeout, so that the manager's own applies: 30 s without a message of the server,
	// and twice as long after each attempt in a row that took too long, up to 5 min. ConnectTimeout then counts for nothing.
	NoConnectTimeout bool `json:"noConnectTimeout,omitempty" yaml:"noConnectTimeout,omitempty"`
	// Pin is that of the manager's Spec: off, warn (the default) or hold, which holds a tool back whose definition has changed until the
	// owner approves it. It counts where the manager remembers definitions (manager: pins).
	Pin string `json:"pin,omitempty" yaml:"pin,omitempty"`
	// Trusted, Disabled, Connect, ConnectTimeout, CallTimeout, MaxCallTimeout, IdleTimeout, MaxInFlight and MaxQueued are those of
	// the manager's Spec.
	Trusted        bool              `json:"trusted,omitempty" yaml:"trusted,omitempty"`
	Disabled       bool              `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	Connect        messages.Connect  `json:"connect,omitempty" yaml:"connect,omitempty"`
	ConnectTimeout messages.Duration `json:"connectTimeout,omitempty" yaml:"connectTimeout,omitempty"`
	CallTimeout    messages.Duration `json:"callTimeout,omitempty" yaml:"callTimeout,omitempty"`
	MaxCallTimeout messages.Duration `json:"maxCallTimeout,omitempty" yaml:"maxCallTimeout,omitempty"`
	IdleTimeout    messages.Duration `json:"idleTimeout,omitempty" yaml:"idleTimeout,omitempty"`
	MaxInFlight    int               `json:"maxInFlight,omitempty" yaml:"maxInFlight,omitempty"`
	MaxQueued      int               `json:"maxQueued,omitempty" yaml:"maxQueued,omitempty"`
}

// Selector picks servers: by id, by a group's name, by a pattern of path.Match; "*" is all. "any:3" picks three of those
// that the other words pick (of all, if there are none) by the seed, and anew each time that a fault or a command is repeated.
// Empty: all.
type Selector []string

// Fault is something that breaks.
type Fault struct {
	// Fault is a name of the catalogue of transports/fault; With its parameters.
	Fault string            `json:"fault" yaml:"fault"`
	With  map[string]string `json:"with,omitempty" yaml:"with,omitempty,flow"`
	On    Selector          `json:"on,omitempty" yaml:"on,omitempty,flow"`
	// At is the time of its begin, counted from the run's start; For is its length, 0: to the end of Duration. A fault that is
	// an instant (crash) ignores For. Every repeats it, at most Times times (0: until the end of Duration). Spread lets the begin on
	// each server vary over so long, by the seed; 0 is all at once.
	At     messages.Duration `json:"at,omitempty" yaml:"at,omitempty"`
	For    messages.Duration `json:"for,omitempty" yaml:"for,omitempty"`
	Every  messages.Duration `json:"every,omitempty" yaml:"every,omitempty"`
	Times  int               `json:"times,omitempty" yaml:"times,omitempty"`
	Spread messages.Duration `json:"spread,omitempty" yaml:"spread,omitempty"`
}

// Command is something that the owner of the manager does.
type Command struct {
	// Do is disable, disconnect, enable, reconnect, refresh, remove, add, respec, adjust, permit, approve, configure,
	// connectAll, disconnectAll or wake. See Commands.
	// On are the servers that it is about; of configure those that are the whole set from then on.
	Do string   `json:"do" yaml:"do"`
	On Selector `json:"on,omitempty" yaml:"on,omitempty,flow"`
	// With holds the keys of the spec that adjust changes: callTimeout, maxCallTimeout, connect, idleTimeout, maxInFlight, maxQueued,
	// or deny (tools that are not offered, with commas between). For permit it holds refuse: the tools that a rule denies from then
	// on, * for the whole server.
	With map[string]string `json:"with,omitempty" yaml:"with,omitempty,flow"`
	// At, Every, Times and Spread are those of Fault.
	At     messages.Duration `json:"at,omitempty" yaml:"at,omitempty"`
	Every  messages.Duration `json:"every,omitempty" yaml:"every,omitempty"`
	Times  int               `json:"times,omitempty" yaml:"times,omitempty"`
	Spread messages.Duration `json:"spread,omitempty" yaml:"spread,omitempty"`
}

// Commands are the words of Command.Do, each with what it does.
var Commands = map[string]string{
	"disable":       "Toggle(false): the tools are withdrawn, the connection is kept warm",
	"disconnect":    "Disconnect: disabled, and the connection is closed",
	"enable":        "Toggle(true)",
	"reconnect":     "Reconnect",
	"refresh":       "Refresh: the tools are listed again",
	"remove":        "Remove: the server is gone from the manager",
	"add":           "Connect with the group's spec: added again if it was removed, else its spec is said again",
	"respec":        "Connect with a changed spec (another description of the same server)",
	"adjust":        "Connect, or in turns SetServers, with a spec that differs in what no connection depends on (with:)",
	"permit":        "SetPermissions with rules that deny tools (with: refuse)",
	"approve":       "ApprovePins of all changes of tools that wait (manager: pins)",
	"configure":     "SetServers with the whole set as it is: nothing may change; or with only those of on, the others are removed",
	"connectAll":    "ConnectAll: every server that is not connected is enabled or tried now, where nothing else is said about it",
	"disconnectAll": "DisconnectAll: every server is disabled, and its connection is closed",
	"wake":          "the machine wakes up: the manager looks at the clock",
}

// Load is calls that go on meanwhile, open loop: the time of each call is planned, and a slow answer postpones none.
type Load struct {
	On Selector `json:"on,omitempty" yaml:"on,omitempty,flow"`
	// Tool is read (marked read-only), put (marked idempotent) or write (neither); write.
	Tool string `json:"tool,omitempty" yaml:"tool,omitempty"`
	// Read makes reads of the calls: resources, templates, resource, prompts, prompt, complete, subscribe, tasks or ping. What they
	// come to is not in the record. Only servers that say offers: have what they read.
	Read string `json:"read,omitempty" yaml:"read,omitempty"`
	// Rate is calls per second and server; 1. Arrivals are Poisson by the seed.
	Rate float64 `json:"rate,omitempty" yaml:"rate,omitempty"`
	// Together is how many of the calls are made in one instant, as an agent makes the calls of one turn; 1.
	Together int `json:"together,omitempty" yaml:"together,omitempty"`
	// Timeout bounds a call beside the server's own call timeout; 0: none.
	Timeout messages.Duration `json:"timeout,omitempty" yaml:"timeout,omitempty"`
	// Size is the length of the answer's padding in bytes.
	Size int `json:"size,omitempty" yaml:"size,omitempty"`
	// Callers is on behalf of how many the calls are made, by turns; 1. Task asks for each call to run as a task where its tool
	// leaves the choice.
	Callers int  `json:"callers,omitempty" yaml:"callers,omitempty"`
	Task    bool `json:"task,omitempty" yaml:"task,omitempty"`
	// Cancel is the share of the calls that their callers give up, from 0 to 1, each at a moment of its own by the seed: soon, later,
	// when its server has received it, or with its answer.
	Cancel float64 `json:"cancel,omitempty" yaml:"cancel,omitempty"`
	// From and For say when; all of Duration and Settle.
	From messages.Duration `json:"from,omitempty" yaml:"from,omitempty"`
	For  messages.Duration `json:"for,omitempty" yaml:"for,omitempty"`
}

// Agents are programs that reach the servers through a gateway. With any of them the run has one, over the manager. What they do is
// drawn by the seed: they list, call, give calls up, read, watch resources, set log levels, answer questions, come and go, and send
// what is wrong.
type Agents struct {
	// As is the principal in whose name they come; agents of several entries may share one.
	As    string `json:"as" yaml:"as"`
	Count int    `json:"count,omitempty" yaml:"count,omitempty"` // 1
	// Era is legacy (the default) or modern: what they speak. Over is lines (the default), as on standard input and output, or http.
	Era  messages.Era `json:"era,omitempty" yaml:"era,omitempty"`
	Over string       `json:"over,omitempty" yaml:"over,omitempty"`
	// View is the server that they see; empty: all.
	View string `json:"view,omitempty" yaml:"view,omitempty"`
	// Within are the views to which they are held, each from its time on; empty: none. Through says what chooses them: their token (the
	// default), or the path by which they come.
	Within  []View `json:"within,omitempty" yaml:"within,omitempty"`
	Through string `json:"through,omitempty" yaml:"through,omitempty"`
	// Rate is how much each of them does per second; 1. Arrivals are Poisson by the seed. From and For say when; all of Duration.
	Rate float64           `json:"rate,omitempty" yaml:"rate,omitempty"`
	From messages.Duration `json:"from,omitempty" yaml:"from,omitempty"`
	For  messages.Duration `json:"for,omitempty" yaml:"for,omitempty"`
}

// Manager configures the manager under test; the zero value of a field is the manager's own default.
type Manager struct {
	// Gate is restart.Limits.Processes; 8, as on two processors.
	Gate int `json:"gate,omitempty" yaml:"gate,omitempty"`
	// Stable, Probe, Cap, StdioPark and NetworkPark are those of restart.Policy.
	Stable      messages.Duration `json:"stable,omitempty" yaml:"stable,omitempty"`
	Probe       messages.Duration `json:"probe,omitempty" yaml:"probe,omitempty"`
	Cap         messages.Duration `json:"cap,omitempty" yaml:"cap,omitempty"`
	StdioPark   int               `json:"stdioPark,omitempty" yaml:"stdioPark,omitempty"`
	NetworkPark int               `json:"networkPark,omitempty" yaml:"networkPark,omitempty"`
	// WithdrawAfter and CallWait are those of supervisor.Config; ProbeEvery that of actors.Timing.
	WithdrawAfter messages.Duration `json:"withdrawAfter,omitempty" yaml:"withdrawAfter,omitempty"`
	CallWait      messages.Duration `json:"callWait,omitempty" yaml:"callWait,omitempty"`
	ProbeEvery    messages.Duration `json:"probeEvery,omitempty" yaml:"probeEvery,omitempty"`
	// Audit has the manager keep an audit log, whose records of calls are compared with the calls. Ask has it ask about every call,
	// which is allowed at once.
	Audit bool `json:"audit,omitempty" yaml:"audit,omitempty"`
	Ask   bool `json:"ask,omitempty" yaml:"ask,omitempty"`
	// Pins has it remember the definitions of tools and say which have changed since they were approved.
	Pins bool `json:"pins,omitempty" yaml:"pins,omitempty"`
	// Messages: another actor of the manager's system gives the commands, makes the calls and the reads, watches, and answers
	// what servers ask, all by message and not by the facade. Only the simulation does so.
	Messages bool `json:"messages,omitempty" yaml:"messages,omitempty"`
	// Configured: the servers are those of its configuration. A command that adds, changes or removes one gives the whole set anew
	// (Configure), as a reload of files does, and a person's enable and disable outlast it. Only the simulation does so.
	Configured bool `json:"configured,omitempty" yaml:"configured,omitempty"`
	// Principals: the program has a second manager, whose two servers have an instance for each of several callers. It is used, commanded
	// and broken beside the first one, by the seed. Only the simulation does so.
	Principals bool `json:"principals,omitempty" yaml:"principals,omitempty"`
	// Drills is how many short exercises follow the day, each with a manager of its own and servers without faults, so that each right answer is
	// known beforehand: see package drills. Only the simulation does so.
	Drills int `json:"drills,omitempty" yaml:"drills,omitempty"`
	// BrokenActors: now and then, until the heal, one of its actors panics, as a defect of the manager's own code would have it. Only
	// the simulation does so, and only the invariants judge that hold whatever the manager's own code does.
	BrokenActors bool `json:"brokenActors,omitempty" yaml:"brokenActors,omitempty"`
}

// Clone returns a copy that shares no slice and no map with s.
func (s Scenario) Clone() Scenario {
	s.Tiers, s.Servers, s.Load = slices.Clone(s.Tiers), slices.Clone(s.Servers), slices.Clone(s.Load)
	s.Faults, s.Commands = slices.Clone(s.Faults), slices.Clone(s.Commands)
	s.Agents = slices.Clone(s.Agents)
	for i := range s.Agents {
		s.Agents[i].Within = slices.Clone(s.Agents[i].Within)
		for k := range s.Agents[i].Within {
			v := &s.Agents[i].Within[k]
			v.Servers, v.Deny, v.Only = slices.Clone(v.Servers), slices.Clone(v.Deny), slices.Clone(v.Only)
		}
	}
	s.Invariants, s.Sometimes = slices.Clone(s.Invariants), slices.Clone(s.Sometimes)
	for i := range s.Faults {
		s.Faults[i].With, s.Faults[i].On = maps.Clone(s.Faults[i].With), slices.Clone(s.Faults[i].On)
	}
	for i := range s.Commands {
		s.Commands[i].With, s.Commands[i].On = maps.Clone(s.Commands[i].With), slices.Clone(s.Commands[i].On)
	}
	for i := range s.Load {
		s.Load[i].On = slices.Clone(s.Load[i].On)
	}
	return s
}
