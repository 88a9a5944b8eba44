package session

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Config is the configuration of one [Session]. The zero value works.
type Config struct {
	// ClientName and ClientVersion identify this client in the handshake (clientInfo); "mcpvisor" and "0" if empty.
	ClientName, ClientVersion string
	// Versions are the versions of the legacy era to speak, newest first. The default is 2025-11-25, 2025-06-18, 2025-03-26,
	// 2024-11-05. The session offers the first to the server; the server may choose any other of them.
	Versions []string
	// ModernVersions are the versions of the modern era to speak, newest first. The default is 2026-07-28.
	ModernVersions []string
	// Era pins the era; EraAuto lets the handshake find it out. Known is the era that an earlier handshake with this server
	// found: the session tries it first and probes again if it proves wrong.
	Era, Known messages.Era
	// InitializeFirst asks initialize before server/discover, for a server that gave no answer in the other order: some
	// servers wait for ever if their first message is not initialize. The handshake finds out the era all the same.
	InitializeFirst bool
	// Listed is the list of tools that an earlier connection to this server gave, nil if there was none. A tool that the
	// server lists again, byte for byte, is not parsed again and shares the memory of the earlier definition.
	Listed *ToolList
	// ProbeWait bounds the silence about server/discover after which the session asks initialize as well; 1 s if 0.
	// With a longer wait silent servers of the legacy era start later, with a shorter one slow servers of the modern
	// era get two questions.
	ProbeWait time.Duration
	// Handlers answer the requests of the server (roots, sampling, elicitation).
	Handlers Handlers
	// LogLevel is the least severe level of log messages that the session asks for, one of messages.LogLevels; empty leaves
	// the level to the server.
	LogLevel string
	// Share accounts for the memory that this server makes the session hold, within the budget of all servers, and for the
	// cost of its floods; nil sets no bound. The list of tools stays counted after the end of the session, because the owner
	// of the session keeps it: see budget.Share.Keep.
	Share *budget.Share
	// MaxPages bounds the pages of one list, 1,000 if 0; MaxTools bounds the entries of one list of any kind, 100,000 if 0. A
	// list beyond either fails as ClassProtocol. The bounds stop a server that invents pages for ever; no real list comes
	// near.
	MaxPages, MaxTools int
	// NoiseLimit is the number of lines per second that are no JSON-RPC message and are ignored, 1,000 if 0. One line more
	// ends the session as ClassProtocol: such a server logs to its standard output, and reading it costs more than its tools
	// are worth.
	NoiseLimit int
	// Rand draws the random part of pauses, numbers in [0,1); nil uses the runtime's generator. Several goroutines call it at
	// once.
	Rand func() float64
	// OnToolsChanged runs after the server announced that its tool list changed, or when an announcement may have
	// been missed. Several changes that arrive before the call begins become one call; the last one is never lost.
	// nil ignores the changes. OnPromptsChanged does the same for the prompts, OnResourcesChanged for the resources
	// and their templates; the session forgets the lists that it kept of them before it calls.
	OnToolsChanged, OnPromptsChanged, OnResourcesChanged func()
	// OnResourceUpdated runs after the server announced an update of a resource that the session watches
	// ([Session.Subscribe]), or of one inside it, or when an announcement may have been missed. Several updates of
	// one resource that arrive before the call begins become one call; the last one is never lost. Beyond 1,024
	// resources at a time, those that are not subscribed to are dropped. nil ignores the updates.
	OnResourceUpdated func(uri string)
	// OnLog gets each log message of the server, in order: level, logger (may be empty) and data as the server sent
	// them, so it must neutralise them before it shows them. Messages that arrive faster than OnLog returns are
	// dropped beyond 256 messages or 1 MiB, and counted. nil ignores them.
	//
	// The On… functions run one at a time, never on the goroutine that reads, and may use the session. They should
	// return soon: Released waits for them. A panic of one ends the session as ClassPanic.
	OnLog func(level, logger string, data json.RawMessage)
}

// DefaultVersions returns the protocol versions of the legacy era that a session speaks if Config.Versions is empty, newest
// first.
func DefaultVersions() []string { return slices.Clone(defaultVersions) }

// All sessions share these slices and only read them; the exported functions return clones.
var (
	defaultVersions       = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	defaultModernVersions = []string{"2026-07-28"}
)

// withDefaults returns c with each zero field replaced by the default that its comment names.
func (c Config) withDefaults() Config {
	if c.ClientName == "" {
		c.ClientName = "mcpvisor"
	}
	if c.ClientVersion == "" {
		c.ClientVersion = "0"
	}
	if len(c.Versions) == 0 {
		c.Versions = defaultVersions
	}
	if len(c.ModernVersions) == 0 {
		c.ModernVersions = defaultModernVersions
	}
	if c.ProbeWait <= 0 {
		c.ProbeWait = time.Second
	}
	if c.MaxPages <= 0 {
		c.MaxPages = 1_000
	}
	if c.MaxTools <= 0 {
		c.MaxTools = 100_000
	}
	if c.NoiseLimit <= 0 {
		c.NoiseLimit = 1_000
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// DefaultModernVersions returns the versions of the modern era that a session speaks if Config.ModernVersions is empty,
// newest first.
func DefaultModernVersions() []string { return slices.Clone(defaultModernVersions) }
