package messages

import (
	"errors"
	"math"
	"time"
)

// This file is the only place that turns plain Go types into protobuf and back.

// ToProto returns the protobuf form of the spec. Scope, Source and the texts about the spec's state are left out: a
// spec that comes by a message has ScopeRuntime.
func (s Spec) ToProto() *ServerSpec {
	p := &ServerSpec{
		Type: string(s.Type), Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd, InheritEnv: s.InheritEnv,
		Url: s.URL, Headers: s.Headers, FallbackSse: s.FallbackSSE, Name: s.Name, Id: s.ID,
		Disabled: s.Disabled, Connect: string(s.Connect),
		IdleTimeoutMs: toMillis(s.IdleTimeout), ConnectTimeoutMs: toMillis(s.ConnectTimeout),
		CallTimeoutMs: toMillis(s.CallTimeout), StopGraceMs: toMillis(s.StopGrace),
		MaxMessage: s.MaxMessage, DeniedTools: s.DeniedTools, Trusted: s.Trusted,
		Era: string(s.Era), MaxCallTimeoutMs: toMillis(s.MaxCallTimeout), LogLevel: s.LogLevel, Pin: s.Pin,
		AllowPlainHttp: s.AllowPlainHTTP, MaxInFlight: clampInt32(s.MaxInFlight), MaxQueued: clampInt32(s.MaxQueued),
		MayControl: s.MayControl,
	}
	if s.AllowedTools != nil {
		p.AllowedTools = &ToolList{Names: s.AllowedTools}
	}
	p.Auth = s.Auth.toProto()
	p.Isolation = s.Isolation.toProto()
	if t := s.TLS; t != nil {
		p.Tls = &ServerTLS{CaFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName}
	}
	return p
}

// ToSpec returns the Go form, with ScopeRuntime. A nil receiver gives the zero Spec.
func (p *ServerSpec) ToSpec() Spec {
	s := Spec{
		Type: TransportKind(p.GetType()), Command: p.GetCommand(), Args: p.GetArgs(), Env: p.GetEnv(), Cwd: p.GetCwd(),
		URL: p.GetUrl(), Headers: p.GetHeaders(), FallbackSSE: p.GetFallbackSse(), Name: p.GetName(), ID: p.GetId(),
		Disabled: p.GetDisabled(), Connect: Connect(p.GetConnect()),
		IdleTimeout: fromMillis(p.GetIdleTimeoutMs()), ConnectTimeout: fromMillis(p.GetConnectTimeoutMs()),
		CallTimeout: fromMillis(p.GetCallTimeoutMs()), StopGrace: fromMillis(p.GetStopGraceMs()),
		MaxMessage: p.GetMaxMessage(), DeniedTools: p.GetDeniedTools(), Trusted: p.GetTrusted(), Scope: ScopeRuntime,
		Era: Era(p.GetEra()), MaxCallTimeout: fromMillis(p.GetMaxCallTimeoutMs()), LogLevel: p.GetLogLevel(), Pin: p.GetPin(),
		AllowPlainHTTP: p.GetAllowPlainHttp(), MaxInFlight: int(p.GetMaxInFlight()), MaxQueued: int(p.GetMaxQueued()),
		MayControl: p.GetMayControl(),
	}
	if p != nil {
		s.InheritEnv = p.InheritEnv
	}
	if l := p.GetAllowedTools(); l != nil {
		s.AllowedTools = append([]string{}, l.GetNames()...)
	}
	s.Auth = p.GetAuth().toAuth()
	s.Isolation = p.GetIsolation().toIsolation()
	if t := p.GetTls(); t != nil {
		s.TLS = &TLS{CAFile: t.GetCaFile(), CertFile: t.GetCertFile(), KeyFile: t.GetKeyFile(), ServerName: t.GetServerName()}
	}
	return s
}

// ToProto returns the protobuf form of the status.
func (s Status) ToProto() *ServerStatus {
	p := &ServerStatus{
		Name: s.Name, Status: string(s.Status), Error: s.Error, Scope: string(s.Scope), Reason: s.Reason,
		Transport: string(s.Transport), ProtocolVersion: s.ProtocolVersion, Attempts: int32(s.Attempts),
		Restarts: int32(s.Restarts), StderrTail: s.StderrTail, Step: string(s.Step), Class: string(s.Class),
		Retry: string(s.Retry), Epoch: s.Epoch, Pid: int32(s.PID), Warm: s.Warm, Tools: int32(len(s.Tools)),
		Era: string(s.Era), Remark: s.Remark, InFlight: clampInt32(s.InFlight), Queued: clampInt32(s.Queued),
	}
	if s.ServerInfo != nil {
		p.ServerName, p.ServerVersion = s.ServerInfo.Name, s.ServerInfo.Version
	}
	if e := s.Isolation; e != nil {
		p.Isolation = &IsolationStatus{InForce: e.InForce, Missing: e.Missing}
	}
	p.ChangedTools = changedToProto(s.ChangedTools)
	if s.NextAttempt != nil {
		p.NextAttemptMs = s.NextAttempt.UnixMilli()
	}
	return p
}

func changedToProto(all []ChangedTool) (out []*ChangedToolInfo) {
	for _, c := range all {
		out = append(out, &ChangedToolInfo{Name: c.Name, Parts: c.Parts, Held: c.Held})
	}
	return out
}

// ToProto returns the protobuf form of the event.
func (e Event) ToProto() *WatchEvent {
	p := &WatchEvent{
		Seq: e.Seq, TimeMs: e.Time.UnixMilli(), Kind: string(e.Kind), Server: e.Server, Generation: e.Generation,
		CallId: e.CallID, Tool: e.Tool, Outcome: string(e.Outcome), TookUs: time.Duration(e.Took).Microseconds(),
		Missed: e.Missed, Uri: e.URI, Changed: changedToProto(e.Changed),
	}
	if l := e.Log; l != nil {
		p.Log = &LogMessage{Level: l.Level, Logger: l.Logger, Data: l.Data}
	}
	if e.Status != nil {
		p.Status = e.Status.ToProto()
	}
	return p
}

// FailureOf returns the protobuf form of err; nil for nil. An error of another type becomes its text.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return &Failure{Class: string(ClassOf(err)), Text: Line(err.Error(), 400)}
	}
	f := &Failure{
		Op: e.Op, Outcome: string(e.Outcome), Class: string(e.Class), Server: e.Server, Tool: e.Tool,
		Text: e.Text, Fix: e.Fix, Code: int64(e.Code), Data: e.Data, RetryAfterMs: wholeMillis(e.RetryAfter),
		Retry: string(e.Retry), Task: e.Task,
	}
	if c := e.Challenge; c != nil {
		f.Challenge = &FailureChallenge{Scheme: c.Scheme, Scope: c.Scope, ResourceMetadata: c.ResourceMetadata, Text: c.Text}
	}
	// The wrapped error stays on this side; the other one gets its own sentinel by name.
	for name, cause := range failureCauses {
		if errors.Is(err, cause) {
			f.Cause = name
		}
	}
	return f
}

// failureCauses are the sentinels that errors wrap, at most one each, by their names in Failure. The other sentinels follow from the
// outcome, the class and the retry.
var failureCauses = map[string]error{
	"unknown-server": ErrUnknownServer, "unknown-tool": ErrUnknownTool, "unknown-resource": ErrUnknownResource,
	"unknown-prompt": ErrUnknownPrompt, "disabled": ErrDisabled, "queue-full": ErrQueueFull, "memory": ErrMemory, "closed": ErrClosed,
}

// wholeMillis rounds up, because a client that comes back sooner than a server asked for is refused again.
func wholeMillis(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// FailuresOf returns the protobuf form of every *Error that err joins; one for any other error, none for nil.
func FailuresOf(err error) []*Failure {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Failure
		for _, part := range joined.Unwrap() {
			all = append(all, FailureOf(part))
		}
		return all
	}
	return []*Failure{FailureOf(err)}
}

// ToProto returns the protobuf form of the resource.
func (r Resource) ToProto() *ResourceEntry {
	return &ResourceEntry{Server: r.Server, Uri: r.URI, Name: r.Name, Title: r.Title, Description: r.Description,
		MimeType: r.MIMEType, Size: r.Size, Definition: r.Raw}
}

// ToProto returns the protobuf form of the template.
func (t ResourceTemplate) ToProto() *ResourceTemplateEntry {
	return &ResourceTemplateEntry{Server: t.Server, UriTemplate: t.URITemplate, Name: t.Name, Title: t.Title,
		Description: t.Description, MimeType: t.MIMEType, Definition: t.Raw}
}

// ToProto returns the protobuf form of the prompt.
func (p Prompt) ToProto() *PromptEntry {
	e := &PromptEntry{QualifiedName: p.Qualified, Server: p.Server, Name: p.Name, Title: p.Title,
		Description: p.Description, Definition: p.Raw}
	for _, a := range p.Arguments {
		e.Arguments = append(e.Arguments, &PromptArgumentEntry{Name: a.Name, Title: a.Title, Description: a.Description,
			Required: a.Required})
	}
	return e
}

// ToError returns the failure as a Go error; nil for nil.
func (f *Failure) ToError() error {
	if f == nil {
		return nil
	}
	e := &Error{
		Op: f.GetOp(), Outcome: Outcome(f.GetOutcome()), Class: Class(f.GetClass()), Server: f.GetServer(),
		Tool: f.GetTool(), Text: f.GetText(), Fix: f.GetFix(), Code: int(f.GetCode()), Data: f.GetData(),
		RetryAfter: max(time.Duration(min(f.GetRetryAfterMs(), math.MaxInt64/int64(time.Millisecond)))*time.Millisecond, 0),
		Retry:      Retry(f.GetRetry()), Task: f.GetTask(), Err: failureCauses[f.GetCause()],
	}
	if c := f.GetChallenge(); c != nil {
		e.Challenge = &Challenge{Scheme: c.GetScheme(), Scope: c.GetScope(), ResourceMetadata: c.GetResourceMetadata(), Text: c.GetText()}
	}
	return e
}

func (a *Auth) toProto() *ServerAuth {
	if a == nil {
		return nil
	}
	p := &ServerAuth{
		Type: a.Type, HeaderName: a.HeaderName, ApiKey: a.APIKey, Token: a.Token, FromEnv: a.FromEnv,
		TokenPath: a.TokenPath, Command: a.Command, Env: a.Env, TimeoutMs: toMillis(a.Timeout),
		AuthUrl: a.AuthURL, TokenUrl: a.TokenURL, Issuer: a.Issuer,
		ClientId: a.ClientID, ClientSecret: a.ClientSecret, ClientKeyFile: a.ClientKeyFile, ClientKeyId: a.ClientKeyID,
		ClientKeyAlgorithm: a.ClientKeyAlgorithm, ClientMetadataUrl: a.ClientMetadataURL,
		Resource: a.Resource, Scopes: a.Scopes, RedirectUrl: a.RedirectURL, CallbackPort: int32(a.CallbackPort),
		SubjectTokenType: a.SubjectTokenType, Audience: a.Audience,
	}
	if a.Args != nil {
		p.Args = &ToolList{Names: a.Args}
	}
	return p
}

func (p *ServerAuth) toAuth() *Auth {
	if p == nil {
		return nil
	}
	a := &Auth{
		Type: p.GetType(), HeaderName: p.GetHeaderName(), APIKey: p.GetApiKey(), Token: p.GetToken(),
		FromEnv: p.GetFromEnv(), TokenPath: p.GetTokenPath(), Command: p.GetCommand(), Env: p.GetEnv(),
		Timeout: fromMillis(p.GetTimeoutMs()), AuthURL: p.GetAuthUrl(), TokenURL: p.GetTokenUrl(), Issuer: p.GetIssuer(),
		ClientID: p.GetClientId(), ClientSecret: p.GetClientSecret(), ClientKeyFile: p.GetClientKeyFile(),
		ClientKeyID: p.GetClientKeyId(), ClientKeyAlgorithm: p.GetClientKeyAlgorithm(),
		ClientMetadataURL: p.GetClientMetadataUrl(), Resource: p.GetResource(), Scopes: p.GetScopes(),
		RedirectURL: p.GetRedirectUrl(), CallbackPort: int(p.GetCallbackPort()),
		SubjectTokenType: p.GetSubjectTokenType(), Audience: p.GetAudience(),
	}
	if l := p.GetArgs(); l != nil {
		a.Args = append([]string{}, l.GetNames()...)
	}
	return a
}

// clampInt32 returns a bound in the range of protobuf. A larger one bounds nothing that a machine can hold, so that
// cutting it changes nothing.
func clampInt32(n int) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

func toMillis(d Duration) int64    { return time.Duration(d).Milliseconds() }
func fromMillis(ms int64) Duration { return Duration(time.Duration(ms) * time.Millisecond) }
