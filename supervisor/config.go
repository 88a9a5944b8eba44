package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Config describes a manager for [Start]. The zero value works: no servers yet, every default, silent logs. Start copies it;
// later changes of its fields have no effect. Its fields, by what one wants:
//
//   - servers: Servers, InProcess, Transport, Wrap, Policy, Managed, AllowedTransports, Guard, InheritEnv, SearchPath
//   - where the manager lives: Logger, System, ActorOptions, ClientName, ClientVersion, CacheDir, RememberTools, Rand
//   - credentials: AuthProvider, AuthStore, AuthLocks, LookupEnv, LoginPrompt
//   - when servers are tried again: Restart, Gate, Timing, WithdrawAfter, CallWait
//   - bounds: MaxInFlight, MaxQueued, MemoryBudget, SharedLimits
//   - which tools may be called: Naming, Access, Ask, Allow, Pins, Pin, LeastPin
//   - what stands in the way of calls: Interceptors, InlineInterceptors, Sanitize, SkipOutputCheck, Audit, AuditOptions, AuditProject
//   - what servers may ask: Elicit, ElicitURL, Sample, SampleTools, Roots
//
// There is no clock among them: a test that is run by testing/synctest gives the whole manager virtual time, as package supervisortest
// tells.
type Config struct {
	// Servers are connected from the start, by id. FromFiles reads them from configuration files.
	Servers map[string]Spec

	// Logger receives structured logs; nil logs nothing. No line carries a header value, an environment value or a token.
	// NewSlogLogger makes one over a handler of log/slog. A line is written when what it tells of goes on, by one goroutine at a time that
	// is not that of an actor. A logger that blocks holds an actor for a second at most, and no other until it returns: 256
	// lines wait for it, and those that come then are lost, with a line that counts them. A line during which it panics is lost.
	Logger *zap.Logger
	// System is the actor system to live in; nil makes one. In a system that the program owns, only the manager's actors are
	// stopped. Its log is the program's business: the actor library logs whole undeliverable messages, and AddServer holds secrets.
	System *actor.ActorSystem
	// ActorOptions, if set, gives the options with which an actor of the manager is made, beside the manager's own: a dispatcher,
	// a mailbox, middleware that traces messages. The actor's name is "supervisor", "entry", "registry" or "server/" with the
	// server's id. It is called again for each successor of an actor that panicked, also from inside the supervisor's own turn:
	// it must not block. It must set neither a supervisor strategy nor a guardian, and must keep the order of an actor's
	// messages. If it panics, or an option does when it is used, the actor is made without its options. A middleware must pass on
	// each message: one that does not, or panics, costs its server the actor. The status then says so, and the server is tried
	// again as after a panic.
	ActorOptions func(actorName string) []actor.PropsOption

	// InProcess holds servers of this very program, for specs of type "sdk": by Spec.Name, or by the server's id. See
	// packages transports/mcpgo and transports/gosdk for the values.
	InProcess map[string]func(ctx context.Context, peer inprocess.Peer) error
	// Transport, if set, is asked first for every spec; it returns nil, nil for those that it does not know. It lets a
	// program bring a transport of its own; Wrap puts something around the one that a spec gets otherwise. It may block for the
	// server's connect timeout; it runs outside of every actor. For a caller's instance it gets the server's name, and
	// Spec.Principal says whose; so do Wrap and AuthProvider. The attempt of a Transport or Wrap that has not returned by then
	// fails, and says so; at most 256 runs are left for a server, as of Allow. A Dial of their transport that does not return when
	// its context ends holds its own server in the phase pending, whose reason says so, because a connection that came later would stand beside another.
	Transport func(name string, spec Spec) (transports.Transport, error)
	// Wrap, if set, puts a decorator around the transport of each server, for example fault.Wrap or a recorder. t has everything
	// that the spec and this Config say: environment, directory, guard, isolation, secrets, limits, credentials. Wrap returns nil
	// to leave a transport alone. It runs outside of every actor.
	Wrap func(name string, spec Spec, t transports.Transport) transports.Transport
	// AuthProvider, if set, gives the requests of a remote server their credentials in the place of what its spec has
	// under auth; package transports/auth has implementations. It returns nil, nil for a server whose spec counts.
	// It is called once for each spec of a server, outside of every actor, and may block; the Authorizer is kept as long as
	// the spec is in force. Login can sign in with one that has the methods of *oauth.Authorizer. A child process and a transport
	// without headers (package stream) have credentials of their own, and ask no Authorizer. A method of an Authorizer that does not return
	// holds its own request, until the context of that ends; at most 256 are left for a server, as of Allow. The attempt of an AuthProvider
	// that does not return fails after the connect timeout, 30 s at most, and ends with its server or the manager.
	AuthProvider func(server string, spec Spec) (transports.Authorizer, error)
	// AuthStore keeps sign-ins; nil opens the one of DefaultAuthOptions when a server needs it. A program that must not
	// touch the person's keyring says auth.NewMemory(). AuthLocks belong to it and must be those of every other process
	// that uses the same store; nil means LocksFor(DefaultAuthOptions()), and for an *auth.Memory locks of its own.
	// A method that does not return holds what asked it until the context of that ends; its goroutine is left, at most 256.
	AuthStore auth.Store
	AuthLocks *auth.Locks
	// LookupEnv returns the variables that specs name under auth.fromEnv; nil means those of this process. A program that runs servers
	// for another one gives the variables of that. It is called in any goroutine. Where it panics, or does not return, no list of the
	// server is kept or found in CacheDir, and its calls end with their contexts.
	LookupEnv func(name string) (string, bool)
	// LoginPrompt gives the way in which Login asks the person, where the options of Login do not. Where it panics, or has not
	// returned when the context of Login ends, Login returns with an error that says so.
	LoginPrompt func(server string) oauth.Prompt
	// Policy says which commands may run and which URLs may be reached; the zero value refuses none. Managed are those of
	// the organisation, which FromFiles reads, on top: all must agree. The manager checks them before anything of a server runs,
	// whatever the source of its spec; a refused server is failed{denied} with the rule.
	Policy  config.Policy
	Managed []config.Policy
	// AllowedTransports, if not nil, lists the only kinds that may be used. A server side that must not start processes
	// says []messages.TransportKind{messages.HTTP, messages.SSE}.
	AllowedTransports []messages.TransportKind
	// Guard is informed of every child process group; see stdio.StartGuardian. Without one, children of a manager that
	// is killed with SIGKILL end on Linux when the kernel signals the direct child, and their own children do not.
	Guard stdio.Guard
	// InheritEnv gives children the whole environment unless their spec says otherwise; default false: an allow-list.
	InheritEnv bool
	// SearchPath returns the PATH of children whose spec has none, in which their programs are looked for, too; nil means that of this
	// process. It is called for each start of a server, in any goroutine. A program that runs servers for several shells gives each
	// manager its own. What is said of LookupEnv when it panics or does not return is true of it, too.
	SearchPath func() string

	// Restart says when failed servers are tried again; the zero value is restart.DefaultPolicy, and another one begins with
	// it, because a policy is whole. One that contradicts itself makes Start fail.
	Restart restart.Policy
	// Gate bounds how many servers may start at once; the zero value is restart.DefaultLimits(GOMAXPROCS).
	Gate restart.Limits
	// Timing holds the durations of connections: coalescing, drains, probes.
	Timing actors.Timing
	// WithdrawAfter is the time for which the tools of a lost connection stay in the catalog, marked lost; 0 is 5 s. A longer
	// time hides longer interruptions from a model, and lets it choose tools that are not there.
	WithdrawAfter time.Duration
	// CallWait lets a call or a read whose server is not connected wait for it, at most so long and never past its own deadline,
	// also at the start, and when its tools are withdrawn already. It ends not-sent at once if the server cannot be connected in
	// that time: disabled, without credentials, not retried, or parked until later. With 0 it always ends at once. The error names
	// the server, and Error.RetryAfter says when the next attempt begins.
	CallWait time.Duration

	// MaxInFlight and MaxQueued are the bounds of servers whose spec says none: how many calls and reads may run at one server at
	// once, and how many more may wait for a slot. 0 and 0: no bound, and messages.DefaultMaxQueued. Free slots go to the waiting
	// callers in turn (WithCaller); a call that finds the queue full fails with ErrQueueFull. A bound keeps an agent with many
	// sub-agents from overloading a server; it costs a lock per call of the same server.
	MaxInFlight, MaxQueued int

	// MemoryBudget bounds how many bytes are held for all servers together: their lists, what is received of messages beyond 1 MiB
	// each (128 KiB over HTTP and WebSocket), and the logs that are kept; 0 is 512 MiB, and a negative one is no bound. Each of N
	// servers may always hold 1/(2N) of it; the rest goes to the servers that ask, and the one that holds most is refused first: see
	// package transports/budget. A refused list fails with messages.ErrMemory (ErrMemory) and ClassExhausted, and is listed again
	// later; a message waits up to 2 s, while its server is left unread, and ends its call with the same error; of logs the
	// oldest go. Less protects a small machine, and keeps servers with very long lists, or a Spec.MaxMessage of hundreds of MiB,
	// from working.
	MemoryBudget int64

	// SharedLimits, if not nil, are one gate and one memory budget for several managers of a program, in the place of Gate and
	// MemoryBudget: see NewSharedLimits.
	SharedLimits *SharedLimits

	// Naming says how tools are named for a model; the zero value is mcp__{server}__{tool}, at most 64 characters.
	Naming messages.Naming
	// Access are the rules about which tools may be called; see package supervisor/access, and FromFiles, which reads them.
	// The zero value allows everything. A tool that they can only deny is not offered. SetPermissions replaces them.
	Access access.Rules
	// Ask answers whether a call may be made that the rules ask about; nil refuses it. Equal calls of one caller at the same
	// time are one question, which says how many they are (AskRequest.Equal); AskOnce lets one of them pass. The manager calls Ask
	// concurrently, for at most 64 different questions at a time; one more is refused. Ask may take as long as a person does: a
	// call's timeout begins afterwards. ctx ends when the caller gives up, and with the manager. With Ask, the annotations of
	// trusted servers count: a destructive tool is asked about.
	Ask func(ctx context.Context, r AskRequest) (AskAnswer, error)
	// Pins remembers the definitions of tools; with nil none are remembered, and Pin has no effect. Pin says what is done about a
	// changed definition where a spec says nothing: messages.PinWarn if empty. LeastPin is the least that is done, whatever a spec
	// and Pin say; empty asks for nothing. Another word makes Start fail. A store may be shared with other processes: their approvals are
	// noticed within 0.25 s.
	Pins          *pins.Store
	Pin, LeastPin string
	// Allow refuses a call before it is sent, by returning an error; nil allows every tool that is offered. It is called
	// after the rules have allowed the call. With any error the call ends denied and not sent (ErrDenied, ErrNotSent), with the
	// error's text; errors.Is finds the error itself. A panic refuses the call, too. One that does not return holds no call beyond
	// its ctx: it ends not sent, and the goroutine of Allow is left behind until it returns. The log names one that has not returned a
	// second later; while 256 are left for a server, further calls of that are refused: those under way may be left too. All this holds for Ask as well. Before an instance is made for
	// a caller (Spec.Share) it is asked once more, without arguments, as by ToolsFor: a caller who may call no tool gets no instance.
	Allow func(ctx context.Context, tool *Tool, args json.RawMessage) error
	// Interceptors run around every tool call and every read, the first one outermost: for measurements, traces over several programs,
	// limits per caller, answers that are kept. See [Interceptor]. None cost nothing.
	Interceptors []Interceptor
	// InlineInterceptors runs the Interceptors in the goroutine of the caller, which saves a call two changes of goroutines: 0.6 µs where
	// all processors are busy, and up to 2.5 µs where one is idle (test/bench/supervision, BenchmarkCaller). It is for interceptors that return when their ctx ends:
	// one that does not holds its caller until it does, also after Close, and runtime.Goexit in it ends the goroutine of the caller. A
	// panic ends the call, as without it. Default false.
	InlineInterceptors bool
	// Sanitize may rewrite every result before the caller sees it: tool results are untrusted. nil changes nothing. It
	// must return a JSON object and is called concurrently, in a goroutine that is not the caller's. If it panics, returns something
	// else, or does not return before the caller's ctx ends, and within the server's callTimeout (60 s if it has none), the call ends
	// as unknown: the tool ran. Its goroutine is left behind then, and bounded, as that of Allow.
	Sanitize func(tool *Tool, result json.RawMessage) json.RawMessage
	// SkipOutputCheck switches Result.Flaw off: answers are not compared with output schemas. Default false; the comparison
	// costs nothing for a result whose Flaw is not called.
	SkipOutputCheck bool

	// Elicit, Sample and Roots answer the requests of servers. An ability whose function is nil is not announced, and refused.
	// They are called concurrently, also several times for one server, and may take as long as a person does: the timeout
	// of the calls that wait for them pauses, MaxCallTimeout does not. ctx ends with the connection, and when the server
	// or the caller takes the request back. The function should return soon then: nothing waits for it. The goroutine of one that does
	// not return is left until it does, at most 256 for a server, as of Allow; a panic, or a runtime.Goexit, fails the request. An
	// error that is ErrDenied says that the person refused; of any other error the server learns only that the request failed.
	//
	// Elicit asks the person a question of a server. A program should show which server asks, and let the person decline. The
	// accepted form is checked against the server's schema; one that does not fit is logged and not sent. Nothing is filled in: a
	// program that shows a form calls [FillDefaults] first. A server may ask ten times at once and once more every 6 s; beyond
	// that it is refused without a call of Elicit, as are forms that cannot be used. ElicitURL announces that a person can be sent
	// to a URL as well: show its host, ask, and open it in a browser; never fetch it. A call that a server of 2025-11-25 refuses
	// until the person has visited a URL (-32042) asks the person as well, and is sent again afterwards.
	Elicit    func(ctx context.Context, r ElicitRequest) (ElicitResult, error)
	ElicitURL bool
	// Sample asks the model on behalf of a server and returns the result of sampling/createMessage, a JSON object.
	// SampleTools announces that the request may bring tools for the model.
	Sample      func(ctx context.Context, r SampleRequest) (json.RawMessage, error)
	SampleTools bool
	// Roots returns the directories in which the named server may work.
	Roots func(ctx context.Context, server string) ([]Root, error)

	// Audit gets the record of what is done: a JSON line for each call, answer, change of a server's phase, of the
	// configuration and of the rules; see package supervisor/audit, and audit.File for a file. One goroutine writes it, whole
	// lines at a time, and no call waits for it; the manager does not close it. nil records nothing, and costs nothing.
	// AuditProject is written at the beginning of the record.
	Audit        io.Writer
	AuditOptions audit.Options
	AuditProject string

	// ClientName and ClientVersion are sent to servers in the handshake; "mcpvisor" and the module's version if empty.
	ClientName, ClientVersion string
	// CacheDir keeps the tools of lazy servers between runs; with an empty one nothing is kept. A list is offered again only under
	// the same spec with the same values of headers, environment and auth, and the same account of a sign-in. The account behind a
	// helper, a token file or a client certificate cannot be known, so their lists are kept only if the server says that they are
	// public. Start and Connect look for up to 2 s which account is signed in where a list is kept. If the key file in CacheDir is
	// readable by other users, nothing is kept.
	CacheDir string
	// RememberTools keeps the tools of all servers there, and not of lazy ones alone. They are not offered by themselves:
	// Manager.RememberedTools returns those of a server that is still on its way.
	RememberTools bool

	// Rand draws the jitter, numbers in [0,1); nil uses the runtime's generator. It is called for one number after the other, in a
	// goroutine of its own. Sessions draw from generators that are seeded by it. Where it panics, draws another number or does not
	// return within a second, the runtime's generator counts, also until a call that takes longer has returned.
	Rand func() float64
}

// withDefaults returns the configuration with its defaults filled in, or an error of ClassInvalid. It works on a copy: the
// program may use its own value for a second manager.
func (c Config) withDefaults() (Config, error) {
	c.Logger = guardLogger(c.Logger)
	c.ActorOptions = guardActorOptions(c.ActorOptions, c.Logger)
	if c.Restart == (restart.Policy{}) {
		c.Restart = restart.DefaultPolicy()
	}
	if err := c.Restart.Validate(); err != nil {
		return c, &Error{Op: "configure", Class: messages.ClassInvalid, Text: "the restart policy cannot be used: " + strings.ReplaceAll(err.Error(), "\n", "; "),
			Fix: "begin with restart.DefaultPolicy() and change what shall differ", Err: err}
	}
	// A misspelt word would count as the default, and hold no changed tool back.
	for option, word := range map[string]string{"Pin": c.Pin, "LeastPin": c.LeastPin} {
		if !slices.Contains([]string{"", messages.PinOff, messages.PinWarn, messages.PinHold}, word) {
			return c, &Error{Op: "configure", Class: messages.ClassInvalid, Text: fmt.Sprintf("Config.%s is %q", option, word),
				Fix: "use messages.PinOff, PinWarn or PinHold, or leave it empty"}
		}
	}
	if c.Gate == (restart.Limits{}) {
		c.Gate = restart.DefaultLimits(runtime.GOMAXPROCS(0))
	}
	if c.ClientName == "" {
		c.ClientName = "mcpvisor"
	}
	if c.ClientVersion == "" {
		c.ClientVersion = Version()
	}
	c.Timing = c.Timing.WithDefaults()
	c.Interceptors = slices.DeleteFunc(slices.Clone(c.Interceptors), func(f Interceptor) bool { return f == nil })
	if c.WithdrawAfter == 0 {
		c.WithdrawAfter = 5 * time.Second
	}
	return c, nil
}
