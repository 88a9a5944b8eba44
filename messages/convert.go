package messages

import (
	"math"
	"time"
)

// The files convert*.go are the only place that turns plain Go types into protobuf and back: this one has what describes a server.

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
