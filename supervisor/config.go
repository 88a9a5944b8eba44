package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/lists"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// Config is what a manager is made of. The zero value works: no servers yet, every default, silent logs.
type Config struct {
	// Servers are connected from the start, by id. FromFiles reads them from configuration files.
	Servers map[string]Spec

	// Logger receives structured logs; nil logs nothing. No line carries a header value, an environment value or a token.
	Logger *zap.Logger
	// System is the actor system to live in; nil makes one. In a system that is not ours only our own actors are stopped.
	// Its log is its owner's: the actor library logs whole messages that reach nobody, and AddServer holds secrets.
	System *actor.ActorSystem
	// ActorOptions, if set, gives the options with which an actor of the manager is made, beside our own: a dispatcher, a
	// mailbox, middleware that traces messages. The actor's name is "supervisor", "entry", "registry" or "server/" with the
	// server's id. It is asked again for each successor of an actor that panicked, also from inside the supervisor's own
	// turn: it must not block. A supervisor strategy and a guardian are not for it to choose, and it must keep the order of
	// an actor's messages.
	ActorOptions func(actorName string) []actor.PropsOption

	// InProcess holds servers of this very program, for specs of type "sdk": by Spec.Name, or by the server's id. See
	// packages transports/mcpgo and transports/gosdk for the values.
	InProcess map[string]func(ctx context.Context, peer transports.Peer) error
	// Transport, if set, is asked first for every spec; it returns nil, nil for those that it does not know. It lets a
	// program bring a transport of its own. It may block; it runs outside of every actor.
	Transport func(name string, spec Spec) (transports.Transport, error)
	// Wrap, if set, puts something around the transport of each server, whoever made it: fault.Wrap, a recorder. t has everything
	// that the spec and this Config say: environment, directory, guard, isolation, secrets, limits, credentials. It returns nil
	// for those that it leaves alone. It runs outside of every actor.
	Wrap func(name string, spec Spec, t transports.Transport) transports.Transport
	// AuthProvider, if set, gives the requests of a remote server their credentials in the place of what its spec has
	// under auth; see package transports/auth for those that are made. It returns nil, nil for a server whose spec counts.
	// It is asked once for each spec of a server, outside of every actor, and may block; the Authorizer is kept as long as
	// the spec is in force. One with the methods of *oauth.Authorizer can be signed in with by Login.
	AuthProvider func(server string, spec Spec) (transports.Authorizer, error)
	// AuthStore keeps sign-ins; nil opens the one of DefaultAuthOptions when a server needs it. A program that must not
	// touch the person's keyring says auth.NewMemory(). AuthLocks belong to it and must be those of every other process
	// that uses the same store; nil means LocksFor(DefaultAuthOptions()), and for an *auth.Memory locks of its own.
	AuthStore auth.Store
	AuthLocks *auth.Locks
	// LoginPrompt is how Login asks the person if its options do not say.
	LoginPrompt func(server string) oauth.Prompt
	// Policy says which commands may run and which URLs may be reached; the zero value refuses none. Managed are those of
	// the organisation, which FromFiles reads, on top: all must agree. They are asked before anything of a server runs,
	// wherever its spec is from; one that is refused is failed{denied} with the rule.
	Policy  config.Policy
	Managed []config.Policy
	// AllowedTransports, if not nil, lists the only kinds that may be used. A server side that must not start processes
	// says []messages.TransportKind{messages.HTTP, messages.SSE}.
	AllowedTransports []messages.TransportKind
	// Guard is told of every child process group; see transports.StartGuardian. Without one, children of a manager that
	// is killed with SIGKILL end on Linux when the kernel signals the direct child, and their own children do not.
	Guard transports.Guard
	// InheritEnv gives children the whole environment unless their spec says otherwise; default false: an allow-list.
	InheritEnv bool

	// Restart is when failed servers are tried again; the zero value is restart.DefaultPolicy.
	Restart restart.Policy
	// Gate is how many may start at once; the zero value is restart.DefaultLimits(GOMAXPROCS).
	Gate restart.Limits
	// Timing holds the durations of connections: coalescing, drains, probes.
	Timing actors.Timing
	// WithdrawAfter is how long the tools of a lost connection stay in the catalog, marked lost; 5 s. Longer hides
	// longer blips from a model, and lets it choose tools that are not there.
	WithdrawAfter time.Duration
	// CallWait lets a call or a read whose server is not connected wait for it, at most so long and never past its own deadline,
	// also at the start, and when its tools are withdrawn already. It ends not-sent at once if the server cannot be there in
	// that time: disabled, without credentials, not retried, or parked until later. 0: it does so always. The error names the
	// server, and Error.RetryAfter says when the next attempt begins.
	CallWait time.Duration

	// MaxInFlight and MaxQueued are the bounds of servers whose spec says none: how many calls and reads may be under way at
	// one server at once, and how many may wait for their turn. 0 and 0: no bound, and messages.DefaultMaxQueued. Those who
	// wait take turns by their caller (WithCaller). A bound keeps an agent with many sub-agents from drowning a server; it
	// costs a lock per call of the same server.
	MaxInFlight, MaxQueued int

	// MemoryBudget bounds what all servers together may have held for them, in bytes: their lists, what is received of messages
	// beyond 1 MiB each (128 KiB over HTTP and WebSocket), and the logs that are kept; 0 is 512 MiB, and a negative one is no bound. Each
	// of N servers may always hold 1/(2N) of it; the rest goes to whoever asks, and the greediest is refused first: see package
	// transports/budget. A list that is refused fails with messages.ErrMemory (ErrMemory) and ClassExhausted, and is asked for
	// again later; a message waits up to 2 s, while its server is left unread, and ends its call with the same error; of logs the
	// oldest go. Less protects a small machine, and keeps servers with very long lists, or a Spec.MaxMessage of hundreds of MiB,
	// from working.
	MemoryBudget int64

	// Naming is how tools are named for a model; the zero value is mcp__{server}__{tool}, at most 64 characters.
	Naming messages.Naming
	// Access are the rules about which tools may be called; see package supervisor/access, and FromFiles, which reads them.
	// The zero value allows everything. A tool that they can only deny is not offered. SetPermissions replaces them.
	Access access.Rules
	// Ask answers whether a call may be made that the rules ask about; nil refuses it. Equal calls of one caller at the same
	// time are one question, which says how many they are (AskRequest.Equal); AskOnce lets one of them go. It is called concurrently, for at most 64 different questions at a time, and may take as long as a person
	// does: a call's timeout begins afterwards. ctx ends when the caller gives up, and with the manager. With Ask, what
	// trusted servers say of their tools counts: a destructive one is asked about.
	Ask func(ctx context.Context, r AskRequest) (AskAnswer, error)
	// Pins remembers the definitions of tools; nil remembers none, and Pin counts for nothing. Pin is what is done about a
	// changed one where a spec says nothing: messages.PinWarn if empty. LeastPin is the least that is done, whatever a spec and
	// Pin say; empty asks for nothing. A store may be shared with other processes: what they approve is noticed within 0.25 s.
	Pins          *pins.Store
	Pin, LeastPin string
	// Allow refuses a call before it is sent, by returning an error; nil allows every tool that is offered. It is asked
	// after the rules. Whatever the error is, the call ends denied and not sent (ErrDenied, ErrNotSent), with the error's
	// text; errors.Is finds the error itself.
	Allow func(ctx context.Context, tool *Tool, args json.RawMessage) error
	// Sanitize may rewrite every result before the caller sees it: tool results are untrusted. nil changes nothing. It
	// must return a JSON object and is called concurrently.
	Sanitize func(tool *Tool, result json.RawMessage) json.RawMessage
	// SkipOutputCheck switches Result.Flaw off: answers are not compared with output schemas. Default false; it costs
	// nothing while nobody asks for the flaw.
	SkipOutputCheck bool

	// Elicit, Sample and Roots answer what servers ask of this program. What is nil is not announced to them, and refused.
	// They are called concurrently, also several times for one server, and may take as long as a person does: the timeout
	// of the calls that wait for them pauses, MaxCallTimeout does not. ctx ends with the connection, and when the server
	// or the caller takes the question back. Return soon then: a call does not wait for it, the server's next connection and
	// Close do. An error that is ErrDenied says that the person refused; of any other one the
	// server is told only that it failed.
	//
	// Elicit asks the person a question of a server. Show who asks, and let it be declined. What an accepted form lacks
	// and the server has a default for is filled in; then it is checked against the server's schema, and one that does not
	// fit is logged and not sent. A server may ask ten times at once and once more every 6 s; beyond that it is refused
	// without being heard, as are forms that cannot be used. ElicitURL announces that a person can be sent to a URL as
	// well: show its host, ask, and open it in a browser; never fetch it. A call that a server of 2025-11-25 refuses until
	// the person has been at a URL (-32042) asks her as well, and is sent again when she has been there.
	Elicit    func(ctx context.Context, r ElicitRequest) (ElicitResult, error)
	ElicitURL bool
	// Sample asks the model on behalf of a server and returns the result of sampling/createMessage, a JSON object.
	// SampleTools announces that the request may bring tools for the model.
	Sample      func(ctx context.Context, r SampleRequest) (json.RawMessage, error)
	SampleTools bool
	// Roots says where the named server may work.
	Roots func(ctx context.Context, server string) ([]Root, error)

	// Audit gets the record of what is done: a JSON line for each call, answer, change of a server's phase, of the
	// configuration and of what is allowed; see package supervisor/audit, and audit.File for a file. It is written from one
	// goroutine, whole lines at a time, and nobody waits for it; the manager does not close it. nil records nothing, and
	// costs nothing. AuditProject is written at the beginning of the record.
	Audit        io.Writer
	AuditOptions audit.Options
	AuditProject string

	// ClientName and ClientVersion are what servers are told; "mcpvisor" and the module's version.
	ClientName, ClientVersion string
	// CacheDir keeps the tools of lazy servers between runs; empty keeps nothing. A list is offered again to those alone who
	// could read it: under the same spec with the same values of headers, environment and auth, and the same account of a
	// sign-in; who that is cannot be known of a helper, a token file or a client certificate, whose lists are kept only if the
	// server says that they are public. Start and Connect look for up to 2 s who is signed in where a list is kept. A key file
	// there that others can read keeps everything from being kept.
	CacheDir string

	// Rand draws the jitter, numbers in [0,1); nil uses the runtime's generator. It is called from one goroutine. Sessions
	// draw from generators that are seeded by it.
	Rand func() float64

	// hasOwnRand says that Rand is the program's own.
	hasOwnRand bool
	// managed are the policies of the organisation as they are now: Managed, until the files are read again.
	managed *atomic.Pointer[[]config.Policy]
	// clients send the requests of all remote servers.
	clients *httpClients
	// credentials let requests in.
	credentials *credentials
	// lists are the lists of tools that are kept between runs; nil without CacheDir.
	lists *lists.Files
	// budget is the memory of all servers.
	budget *budget.Budget
	// requestHandler answers what servers ask.
	requestHandler *requestHandler
	// permissions decide about calls.
	permissions *permissions
}

// withDefaults fills the defaults, or says what cannot be.
func (c Config) withDefaults() (Config, error) {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Restart == (restart.Policy{}) {
		c.Restart = restart.DefaultPolicy()
	}
	if err := c.Restart.Validate(); err != nil {
		return c, &Error{Op: "configure", Class: messages.ClassInvalid, Text: "the restart policy cannot be used: " + err.Error(), Err: err}
	}
	if c.Gate == (restart.Limits{}) {
		c.Gate = restart.DefaultLimits(runtime.GOMAXPROCS(0))
	}
	c.hasOwnRand = c.Rand != nil
	if !c.hasOwnRand {
		c.Rand = rand.Float64
	}
	if c.ClientName == "" {
		c.ClientName = "mcpvisor"
	}
	if c.ClientVersion == "" {
		c.ClientVersion = Version()
	}
	c.managed = new(atomic.Pointer[[]config.Policy])
	c.managed.Store(&c.Managed)
	c.clients = newClients()
	c.budget = budget.New(c.MemoryBudget)
	if c.CacheDir != "" {
		c.lists = lists.Open(c.CacheDir, func(text string) { c.Logger.Warn(text) })
	}
	c.Timing = c.Timing.WithDefaults()
	if c.WithdrawAfter == 0 {
		c.WithdrawAfter = 5 * time.Second
	}
	return c, nil
}

// refusingRule is the rule of the policy that refuses a spec; empty if none does.
func (c *Config) refusingRule(s Spec) string {
	if rule := c.Policy.Refuses(s); rule != "" {
		return rule
	}
	return config.Refusal(s, *c.managed.Load()...)
}

// specProblem says why a spec cannot work; empty if it can be tried. What only trying shows (a missing binary) is not
// checked.
func (c *Config) specProblem(name string, s Spec) string {
	if name == "" {
		return "a server needs a name"
	}
	if text := checkWords(s); text != "" {
		return text
	}
	kind := s.Kind()
	if c.AllowedTransports != nil && !slices.Contains(c.AllowedTransports, kind) && kind != "" {
		return fmt.Sprintf("the transport %q is not allowed here; allowed are %v", kind, c.AllowedTransports)
	}
	if kind != messages.Stdio && s.Isolation.Asks() {
		return "isolation is of a process, and it has none"
	}
	switch kind {
	case messages.Stdio:
		if s.Command == "" {
			return "a stdio server needs a command"
		}
		if faults := isolation.Check(s.Isolation); len(faults) > 0 {
			return "isolation." + faults[0].Key + ": " + faults[0].Text + "; " + faults[0].Fix
		}
	case messages.HTTP, messages.SSE, messages.WebSocket, messages.ClaudeAIProxy:
		if s.URL == "" {
			return fmt.Sprintf("a server of type %q needs a url", kind)
		}
		if err := checkURL(kind, s.URL); err != "" {
			return err
		}
		if kind == messages.ClaudeAIProxy && s.ID == "" {
			return fmt.Sprintf("a server of type %q needs the id of its connector", kind)
		}
		if t := s.TLS; t != nil && (t.CertFile == "") != (t.KeyFile == "") {
			return "its tls has a certificate or a private key without the other"
		}
		if s.Auth != nil && s.Auth.Type != "" {
			if key, text, fix := config.CheckAuth(s.Auth); text != "" {
				return key + ": " + text + "; " + fix
			}
		}
		if key := config.PlainCredentials(s); key != "" {
			return "its credentials (" + key + ") are not sent to another machine over plain http; " +
				"use https, or set allowPlainHTTP"
		}
	case messages.SDK:
		if c.Transport == nil && c.InProcess[inProcessName(name, s)] == nil {
			return fmt.Sprintf("no in-process server is registered as %q; give it in Config.InProcess", inProcessName(name, s))
		}
	case "":
		return "it has neither a command nor a url"
	default:
		if c.Transport == nil {
			return fmt.Sprintf("the transport %q is unknown; known are %v", kind, messages.TransportKinds)
		}
	}
	return ""
}

// checkWords checks the words that a configuration file could not have held, and a program or a message can.
func checkWords(s Spec) string {
	switch s.Era {
	case messages.EraAuto, messages.EraAutoWord, messages.EraLegacy, messages.EraModern:
	default:
		return fmt.Sprintf("the era %q is unknown; known are auto, legacy and modern", messages.Line(string(s.Era), 40))
	}
	if !slices.Contains([]string{"", messages.PinOff, messages.PinWarn, messages.PinHold}, s.Pin) {
		return fmt.Sprintf("the pin %q is unknown; known are off, warn and hold", messages.Line(s.Pin, 40))
	}
	if s.LogLevel != "" && !slices.Contains(messages.LogLevels, s.LogLevel) {
		return fmt.Sprintf("the log level %q is unknown; known are %s", messages.Line(s.LogLevel, 40),
			strings.Join(messages.LogLevels, ", "))
	}
	return ""
}
