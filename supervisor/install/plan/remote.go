package plan

import (
	"net/url"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// remoteSpec returns the spec for a server that is reached by its URL. Names in braces are its own variables or, for a
// package, the package's arguments and environment.
func (f *resolver) remoteSpec(t *Transport) (messages.Spec, error) {
	var s messages.Spec
	switch t.Type {
	case "streamable-http", "http":
		s.Type = messages.HTTP
	case "sse":
		s.Type = messages.SSE
	default:
		return s, planError(ErrUnusable, "the transport "+shortText(t.Type)+" is neither stdio nor streamable-http nor sse", "")
	}
	parent := Input{Kind: Variable, Name: "url"}
	missing := ""
	w, err := substituteNames(t.URL, func(name string) (mixedText, bool, error) {
		// A package's URL may name its arguments and variables, which have values by now.
		d, declared := t.Variables[name]
		if !declared {
			v, ok := f.values[name]
			if !ok {
				missing = name
			}
			return v, ok, nil
		}
		// A URL with a gap reaches nothing, so that its variables are required.
		v, err := f.variableValue(parent, name, d, true, 0)
		return v, true, err
	})
	if err != nil {
		return s, err
	}
	// substituteNames would leave the braces in the URL.
	if missing != "" {
		return s, planError(ErrUnusable, "the URL has a place for "+shortText(missing)+", which nothing gives a value to", "")
	}
	if err := w.checkSafe("the URL"); err != nil {
		return s, err
	}
	s.URL = w.String()
	if err := f.checkAddress(t.URL, s.URL); err != nil {
		return s, err
	}
	// The headers come after the URL, as a person expects the questions.
	s.Headers, err = f.resolveHeaders(t.Headers)
	if len(s.Headers) == 0 {
		s.Headers = nil
	}
	return s, err
}

// checkAddress checks a URL whose variables are filled. A URL with a reference is checked when the entry is read.
func (f *resolver) checkAddress(template, address string) error {
	if strings.Contains(address, reference) {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, strings.ContainsAny(address, " \t\n"):
		// The address may contain a value that the person typed, and is not quoted.
		return planError(ErrUnusable, "its address is no URL", "")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return planError(ErrUnusable, "its address is no URL of http or https", "")
	case u.User != nil:
		return planError(ErrUnusable, "its address holds a user name or a password", "")
	}
	// A value in the path must not change the host, for example by beginning with "@".
	if t, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(template)); err == nil && t.Host != "" {
		// Only a template whose host has no braces promises a fixed host.
		authority, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(template, "https://"), "http://"), "/")
		if !strings.Contains(authority, "{") && t.Host != u.Host {
			return planError(ErrValue, "a value of the URL changes its host", "")
		}
	}
	// The person decides; config refuses credentials over http later.
	if u.Scheme == "http" && !addresses.ThisMachine(u.Hostname()) {
		f.addNote("the address is http: what is sent can be read on the way")
	}
	return nil
}
