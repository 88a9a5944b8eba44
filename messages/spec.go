package messages

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// DefaultMaxQueued bounds the calls that may wait for a slot at a server with a bound in flight. A waiting call costs
// only the goroutine of its caller, so that the number decides when a caller is better told that it asks for too much.
const DefaultMaxQueued = 1000

// Connect says when a server is dialled.
type Connect string

const (
	// Eager (the default) dials as soon as the server is known.
	Eager Connect = "eager"
	// Lazy dials when one of its tools is called or the server is asked for by name.
	Lazy Connect = "lazy"
)

// Scope says where a spec came from. It decides precedence and trust.
type Scope string

const (
	ScopeManaged Scope = "managed" // the organisation's file; exclusive
	ScopeUser    Scope = "user"    // the person's own file
	ScopeProject Scope = "project" // a file of the project, possibly written by a stranger
	ScopeLocal   Scope = "local"   // the person's own file of this project
	ScopeDynamic Scope = "dynamic" // named on the command line: --config, --mcp-server
	ScopeRuntime Scope = "runtime" // given by the embedding program or by a message
	// ScopeClaudeAI marks a connector of an account. No file has this scope: an embedding program that knows an account's
	// connectors gives them to Config.Servers with it.
	ScopeClaudeAI Scope = "claudeai"
)

// Duration is a time.Duration that is written as text ("1m30s") in JSON and read from such text.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler. It accepts what time.ParseDuration accepts; null changes nothing.
func (d *Duration) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is text such as \"30s\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// Spec describes one server. It is a value: neither you nor mcpvisor changes a Spec that was handed over. The zero value of every field
// other than those that say where the server is has a meaning and a default. The id of a server is not part of its
// spec: it is the key under which the spec stands. A connection lives on when fields change that are marked reconnect:"no".
type Spec struct {
	// Type is the transport. Empty: Stdio if Command is set, HTTP with FallbackSSE if URL is; a spec with both needs it.
	Type TransportKind `json:"type,omitempty"`

	// Command, Args, Env and Cwd start a stdio server. Command is looked up in PATH. Cwd is the manager's own directory
	// if empty. Of a remote server, Cwd is where the command of its Auth runs; the configuration sets it for a project's.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Cwd     string            `json:"cwd,omitempty"`
	// InheritEnv gives the child the manager's whole environment instead of the short allow-list. nil means the
	// manager's own default, which is false.
	InheritEnv *bool `json:"inheritEnv,omitempty"`
	// Isolation says what the child is kept from; nil: nothing.
	Isolation *Isolation `json:"isolation,omitempty"`
	// MayControl lets the child, and whatever it starts, use the control socket of the program that keeps this manager: for
	// a server that is itself an agent or a shell. Without it the processes of a server are refused there.
	MayControl bool `json:"mayControl,omitempty"`

	// URL and Headers reach a remote server.
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Auth says which credentials are sent; nil: those of a sign-in with OAuth, if the server asks for one and a person has signed in.
	Auth *Auth `json:"auth,omitempty"`
	// AllowPlainHTTP lets credentials go to another machine over http or ws, readable to every machine on the way.
	AllowPlainHTTP bool `json:"allowPlainHTTP,omitempty"`
	// TLS names the authorities that may have signed a remote server's certificate, and the certificate that we show; nil: the
	// system's authorities, and none.
	TLS *TLS `json:"tls,omitempty"`
	// FallbackSSE lets an HTTP server that refuses the first POST with 400, 404 or 405 be tried as SSE. The
	// configuration sets it when a URL stands without a type.
	FallbackSSE bool `json:"fallbackSSE,omitempty"`

	// Name is the name under which an SDK server was registered; the server's id if empty.
	Name string `json:"name,omitempty"`
	// ID is the connector's id of a claudeai-proxy.
	ID string `json:"id,omitempty"`

	// Era pins the era of the protocol; EraAuto finds it out and remembers it.
	Era Era `json:"era,omitempty"`
	// LogLevel is the least severe level of log messages that the server is asked to send: one of LogLevels. Empty leaves
	// it to the server.
	LogLevel string `json:"logLevel,omitempty"`

	// Disabled in a configuration means: never dialled until its owner enables it.
	Disabled bool `json:"disabled,omitempty" reconnect:"no"`
	// Connect is Eager if empty.
	Connect Connect `json:"connect,omitempty" reconnect:"no"`
	// IdleTimeout lets a lazy server's connection go when no call used it for so long, no caller watches a resource of
	// it, and its tools are as it listed them last; 0 means never.
	IdleTimeout Duration `json:"idleTimeout,omitempty" reconnect:"no"`
	// Share is ShareAll if empty. MaxInstances bounds the instances that a server with SharePrincipal has at once; a call of a further
	// principal is not sent and wraps ErrTooManyInstances; 0 means DefaultMaxInstances. InstanceIdle ends an instance that no call,
	// wait or subscription used for so long; 0 means DefaultInstanceIdle.
	Share        Share    `json:"share,omitempty" reconnect:"no"`
	MaxInstances int      `json:"maxInstances,omitempty" reconnect:"no"`
	InstanceIdle Duration `json:"instanceIdle,omitempty" reconnect:"no"`
	// ConnectTimeout bounds one attempt from the moment the start gate let it through until the first tool list is in.
	// 0 means that it may be silent for 30 s, twice as long after each attempt that ended by it, up to 5 min. Time in which its
	// processes wait for a processor does not count (Linux), nor, for a program that fetches what it runs (npx, uvx, docker run),
	// time in which that works before its server has said anything; 10 min in all. A value of its own is the whole attempt,
	// whatever happens in it.
	ConnectTimeout Duration `json:"connectTimeout,omitempty" reconnect:"no"`
	// CallTimeout bounds one call; 0 means 60 s, negative means no bound but the caller's.
	CallTimeout Duration `json:"callTimeout,omitempty" reconnect:"no"`
	// MaxCallTimeout bounds one call in all: CallTimeout pauses while a person answers a question of the server and begins
	// again with each progress notification, this does not. 0 means 10 min or CallTimeout, whichever is longer; negative
	// means no bound but the caller's.
	MaxCallTimeout Duration `json:"maxCallTimeout,omitempty" reconnect:"no"`
	// StopGrace is the time that each step of stopping a server waits (closed stdin, then SIGTERM); 0 means 2 s. A
	// program that is still fetching what it runs gets SIGTERM at once, and four times as long after it.
	StopGrace Duration `json:"stopGrace,omitempty" reconnect:"no"`
	// MaxMessage bounds one incoming message in bytes; 0 means 16 MiB.
	MaxMessage int64 `json:"maxMessage,omitempty"`

	// MaxInFlight bounds the calls and reads that may be under way at the server at once; a further one waits for a
	// slot, within its own deadline. A call keeps its slot until it has ended, also while the server asks a person
	// about it: a call that a handler makes at the same server on that occasion needs another slot. 0 means the
	// manager's own default, which is no bound; negative means no bound whatever the manager's default is.
	MaxInFlight int `json:"maxInFlight,omitempty" reconnect:"no"`
	// MaxQueued bounds the calls that may wait for a slot; a further one is not sent and wraps ErrQueueFull. It has an
	// effect only with a bound in flight. 0 means the manager's own default, which is DefaultMaxQueued; negative means
	// that no call waits.
	MaxQueued int `json:"maxQueued,omitempty" reconnect:"no"`

	// AllowedTools, if not nil, lists the only tools that are offered; DeniedTools lists tools that are not, and wins.
	// They are patterns of the server's own tool names: see [MatchPattern].
	AllowedTools []string `json:"allowedTools,omitzero" reconnect:"no"` // omitzero: an empty list, which allows none, must be written
	DeniedTools  []string `json:"deniedTools,omitempty" reconnect:"no"`
	// Pin says what is done about a tool whose definition changed since it was first seen, or approved: PinOff, PinWarn or
	// PinHold. Empty means the manager's own default.
	Pin string `json:"pin,omitempty" reconnect:"no"`
	// Trusted lets the server's own annotations count: a call of a tool that it marks read-only or idempotent may be
	// sent again when its outcome is unknown. Never honoured from a project file.
	Trusted bool `json:"trusted,omitempty" reconnect:"no"`

	// Scope and Source say where the spec came from; Source is a file or empty.
	Scope  Scope  `json:"-"`
	Source string `json:"-"`
	// Invalid is set instead of dropping a spec that cannot work: the server exists, as failed{config}, and says why.
	Invalid string `json:"-"`
	// Remark tells a person something about a spec that is in force all the same: that its file says something else by now,
	// which cannot be used.
	Remark string `json:"-"`
	// Hold is set for a spec that may not start yet, with the reason; the server exists, as failed{denied}. A project
	// server that its owner has not approved is the case.
	Hold string `json:"-"`
	// InstanceOf and Principal are set by the manager on the spec of an instance (SharePrincipal): the server's id, and the caller as
	// WithCaller named it. Whoever gets a spec from the manager can tell by them for whom it works.
	InstanceOf string `json:"-"`
	Principal  string `json:"-"`
}

// What is done about a tool whose definition changed.
const (
	PinOff  = "off"  // nothing
	PinWarn = "warn" // it is logged
	PinHold = "hold" // the tool is held back until a person approves its new definition
)

// TLS says how a connection over https or wss is made safe. The fields name files in PEM form of the machine that runs
// the manager, which are read at every attempt to connect: a renewed certificate counts from the next one on.
type TLS struct {
	// CAFile holds authorities that are trusted for this server, besides those of the system.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the certificate, with those that lead to its authority, and the private key that we show
	// to a server that asks who we are. Both or none.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name that the server's certificate must be for; that of the URL if empty.
	ServerName string `json:"serverName,omitempty"`
}

// Kind returns the transport of the spec: Type, or the one that follows from Command and URL; empty if none does.
func (s Spec) Kind() TransportKind {
	switch {
	case s.Type != "":
		return s.Type
	case s.Command != "":
		return Stdio
	case s.URL != "":
		return HTTP
	}
	return ""
}

// Equal reports whether both specs start the same server in the same way. Where they came from does not count, nor
// does whether a default was written out by name (the kind that follows from the other fields, Eager, the era auto), nor
// nil against empty, except in AllowedTools, where empty allows nothing.
func (s Spec) Equal(o Spec) bool { return reflect.DeepEqual(s.normalized(), o.normalized()) }

// SameConnection reports whether a connection of one spec may serve the other. The specs may differ in fields that
// concern calls, lists, delays and later attempts, and not in fields that decide how the server is started, dialled or
// initialized. StopGrace may differ: the present connection keeps the value with which it was opened.
func (s Spec) SameConnection(o Spec) bool {
	return reflect.DeepEqual(s.connectionSpec(), o.connectionSpec())
}

// connectionSpec returns the normalized spec without the fields on which a connection does not depend.
func (s Spec) connectionSpec() Spec {
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("reconnect") == "no" {
			v.Field(i).SetZero()
		}
	}
	return s.normalized()
}

// dropEmpty makes empty lists and maps of a struct nil, but those with omitzero: an empty one of these means something else.
func dropEmpty(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0 &&
			!strings.HasSuffix(v.Type().Field(i).Tag.Get("json"), ",omitzero") {
			f.SetZero()
		}
	}
}

// normalized returns the spec in the form in which Equal compares it. An empty AllowedTools is not made nil, because it allows
// nothing, while nil allows all.
func (s Spec) normalized() Spec {
	s.Type = s.Kind()
	if s.Connect == "" {
		s.Connect = Eager
	}
	if s.Share == ShareAll {
		s.Share = ""
	}
	if s.Era == EraAutoWord {
		s.Era = EraAuto
	}
	dropEmpty(reflect.ValueOf(&s).Elem())
	s.Auth = s.Auth.normalized()
	s.Isolation = s.Isolation.normalized()
	if s.TLS != nil && *s.TLS == (TLS{}) {
		s.TLS = nil
	}
	s.Scope, s.Source, s.Remark = "", "", ""
	return s
}
