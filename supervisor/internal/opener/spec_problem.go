package opener

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
	"github.com/mcpvisor/mcpvisor/transports/kinds"
)

// RefusingRule returns the rule of the first policy that refuses a spec; empty if none does.
func (o *Opener) RefusingRule(s messages.Spec) string {
	if rule := o.Policy.Refuses(s); rule != "" {
		return rule
	}
	return config.Refusal(s, *o.managed.Load()...)
}

// SpecProblem returns why a spec cannot work, as the text of a failed status; empty if it can be tried. Problems that only an
// attempt shows, such as a missing binary, are not checked, because they may pass by themselves.
func (o *Opener) SpecProblem(name string, s messages.Spec) string {
	return o.specProblem(name, s, o.Transport != nil)
}

// specProblem is SpecProblem. hooked says that the program's Transport may know the spec, although nothing else does.
func (o *Opener) specProblem(name string, s messages.Spec, hooked bool) string {
	if name == "" {
		return "a server needs a name"
	}
	if text := checkWords(s); text != "" {
		return text
	}
	// The program's Transport may know what both are for.
	if s.Type == "" && s.Command != "" && s.URL != "" && !hooked {
		return "it has both a command and a url; keep the one that reaches the server, or give it a type"
	}
	// A spec of no kind is reported below, with what it lacks, unless the program's Transport may know it.
	kind := s.Kind()
	if o.Allowed != nil && !slices.Contains(o.Allowed, kind) && (kind != "" || hooked) {
		return fmt.Sprintf("the transport %q is not allowed here; allowed are %v", kind, o.Allowed)
	}
	// Without this refusal a person would believe that a remote server is kept from something.
	if kind != messages.Stdio && s.Isolation.Asks() {
		return "isolation is of a process, and it has none"
	}
	if kind.Remote() {
		return remoteProblem(kind, s)
	}
	switch kind {
	case messages.Stdio:
		if s.Command == "" {
			return "a stdio server needs a command"
		}
		if faults := isolation.Check(s.Isolation); len(faults) > 0 {
			return "isolation." + faults[0].Key + ": " + faults[0].Text + "; " + faults[0].Fix
		}
	case messages.SDK:
		if !hooked && o.InProcess[kinds.InProcessName(name, &s)] == nil {
			return fmt.Sprintf("no in-process server is registered as %q; give it in Config.InProcess", kinds.InProcessName(name, &s))
		}
	// A spec of no kind may be one that only the program's Transport knows.
	case "":
		switch {
		case hooked:
		case o.InProcess[name] != nil:
			return `it has neither a command nor a url; a server of Config.InProcess is of type "sdk"`
		default:
			return "it has neither a command nor a url"
		}
	// A kind that is not known may be the program's own; only its Transport can tell.
	default:
		if !hooked {
			return fmt.Sprintf("the transport %q is unknown; known are %v", kind, messages.TransportKinds)
		}
	}
	return ""
}

// remoteProblem is SpecProblem for a server that is reached by a URL.
func remoteProblem(kind messages.TransportKind, s messages.Spec) string {
	if s.URL == "" {
		return fmt.Sprintf("a server of type %q needs a url", kind)
	}
	if err := checkURL(kind.URLSchemes(), s.URL); err != "" {
		return err
	}
	if kind == messages.ClaudeAIProxy && s.ID == "" {
		return fmt.Sprintf("a server of type %q needs the id of its connector", kind)
	}
	if t := s.TLS; t != nil && (t.CertFile == "") != (t.KeyFile == "") {
		return "its tls has a certificate or a private key without the other"
	}
	if a := s.Auth; a != nil && (a.Type != "" || hasCredential(a)) {
		if key, text, fix := config.CheckAuth(a); text != "" {
			return key + ": " + text + "; " + fix
		}
	}
	// The transport would refuse to send them as well; here the person learns it before the first attempt, with the key.
	if key := config.PlainCredentials(s); key != "" {
		return "its credentials (" + key + ") are not sent to another machine over plain http; " +
			"use https, or set allowPlainHTTP"
	}
	return ""
}

// hasCredential reports whether auth holds a credential, or says where one comes from. Its type says what is done with it: without one
// the server is taken for one of OAuth's, and the credential would never be sent.
func hasCredential(a *messages.Auth) bool {
	return a.APIKey != "" || a.Token != "" || a.FromEnv != "" || a.TokenPath != "" || a.Command != ""
}

// checkWords checks the values that a configuration file could not have held (its reader refuses them), while a program or a
// message can.
func checkWords(s messages.Spec) string {
	switch s.Era {
	case messages.EraAuto, messages.EraAutoWord, messages.EraLegacy, messages.EraModern:
	default:
		return fmt.Sprintf("the era %q is unknown; known are auto, legacy and modern", messages.Line(string(s.Era), 40))
	}
	if !slices.Contains([]string{"", messages.PinOff, messages.PinWarn, messages.PinHold}, s.Pin) {
		return fmt.Sprintf("the pin %q is unknown; known are off, warn and hold", messages.Line(s.Pin, 40))
	}
	// Misspelt, it would let all callers share what each was to have alone.
	if !slices.Contains([]messages.Share{"", messages.ShareAll, messages.SharePrincipal}, s.Share) {
		return fmt.Sprintf("the share %q is unknown; known are all and principal", messages.Line(string(s.Share), 40))
	}
	if !slices.Contains([]messages.Connect{"", messages.Eager, messages.Lazy}, s.Connect) {
		return fmt.Sprintf("the connect %q is unknown; known are eager and lazy", messages.Line(string(s.Connect), 40))
	}
	if s.LogLevel != "" && !slices.Contains(messages.LogLevels, s.LogLevel) {
		return fmt.Sprintf("the log level %q is unknown; known are %s", messages.Line(s.LogLevel, 40),
			strings.Join(messages.LogLevels, ", "))
	}
	if s.ConnectTimeout < 0 {
		return "connectTimeout is negative; 0 leaves it to the manager"
	}
	if s.MaxInstances < 0 {
		return "maxInstances is negative, so that no principal could have an instance; 0 leaves it to the manager"
	}
	if s.InstanceIdle < 0 {
		return "instanceIdle is negative; 0 leaves it to the manager"
	}
	return ""
}
