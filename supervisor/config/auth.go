package config

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// authTexts lists the keys of auth that hold text. In each row the first key is the one of messages.Auth and the others are
// names that other clients use. The rows serve for reading, for expansion, for checks and as candidates of suggestions.
var authTexts = []struct {
	// keys holds the names of the key, mcpvisor's own first.
	keys []string
	// fieldOf returns the field that the key sets.
	fieldOf func(*messages.Auth) *string
	// lenient accepts a number in the place of text, because a key or a token may consist of digits.
	lenient bool
	// file marks the path of a file, which may be relative; url marks an address, which checkAuthURLs parses.
	file, url bool
}{
	{keys: []string{"type"}, fieldOf: func(a *messages.Auth) *string { return &a.Type }},
	{keys: []string{"headerName", "header"}, fieldOf: func(a *messages.Auth) *string { return &a.HeaderName }},
	{keys: []string{"apiKey"}, fieldOf: func(a *messages.Auth) *string { return &a.APIKey }, lenient: true},
	{keys: []string{"token"}, fieldOf: func(a *messages.Auth) *string { return &a.Token }, lenient: true},
	{keys: []string{"fromEnv"}, fieldOf: func(a *messages.Auth) *string { return &a.FromEnv }},
	{keys: []string{"tokenPath", "file"}, fieldOf: func(a *messages.Auth) *string { return &a.TokenPath }, file: true},
	{keys: []string{"authUrl", "authorizationUrl"}, fieldOf: func(a *messages.Auth) *string { return &a.AuthURL }, url: true},
	{keys: []string{"tokenUrl"}, fieldOf: func(a *messages.Auth) *string { return &a.TokenURL }, url: true},
	{keys: []string{"issuer"}, fieldOf: func(a *messages.Auth) *string { return &a.Issuer }, url: true},
	{keys: []string{"clientId", "client_id", "CLIENT_ID"}, fieldOf: func(a *messages.Auth) *string { return &a.ClientID }},
	{keys: []string{"clientSecret", "client_secret", "CLIENT_SECRET"},
		fieldOf: func(a *messages.Auth) *string { return &a.ClientSecret }, lenient: true},
	{keys: []string{"clientKeyFile"}, fieldOf: func(a *messages.Auth) *string { return &a.ClientKeyFile }, file: true},
	{keys: []string{"clientKeyId"}, fieldOf: func(a *messages.Auth) *string { return &a.ClientKeyID }},
	{keys: []string{"clientKeyAlgorithm"}, fieldOf: func(a *messages.Auth) *string { return &a.ClientKeyAlgorithm }},
	{keys: []string{"clientMetadataUrl"}, fieldOf: func(a *messages.Auth) *string { return &a.ClientMetadataURL }, url: true},
	{keys: []string{"resource", "oauth_resource"}, fieldOf: func(a *messages.Auth) *string { return &a.Resource }, url: true},
	{keys: []string{"redirectUrl", "redirectUri", "redirect_uri", "callback_url"},
		fieldOf: func(a *messages.Auth) *string { return &a.RedirectURL }, url: true},
	{keys: []string{"subjectTokenType"}, fieldOf: func(a *messages.Auth) *string { return &a.SubjectTokenType }},
	{keys: []string{"audience"}, fieldOf: func(a *messages.Auth) *string { return &a.Audience }},
}

// authNames holds the candidates for a suggestion when a key of auth is unknown.
var authNames = func() []string {
	names := []string{"command", "args", "env", "timeout", "scopes", "callbackPort"}
	for _, t := range authTexts {
		names = append(names, t.keys[0])
	}
	return names
}()

// readAuth reads an object with the keys of messages.Auth, or one of the words "none" and "oauth", which need no further keys.
func readAuth(r *reader, e *Entry, v value) {
	// A bare word is accepted where nothing else is needed.
	if l, ok := literalOf(v.Value); ok && l.Kind() == '"' {
		if word := l.String(); word == messages.AuthNone || word == messages.AuthOAuth {
			e.Spec.Auth = &messages.Auth{Type: word}
			return
		}
	}
	var a messages.Auth
	// The problems of this key alone decide whether the checks below make sense.
	before := len(r.problems)
	if !r.readObject(v, `write {"type": "api_key", "apiKey": "${NAME}"}`, r.authKey(e, &a)) {
		return
	}
	// The type is optional where the other keys leave one possibility.
	if a.Type == "" {
		a.Type = impliedAuth(&a)
	}
	// A key that could not be read has left its field empty. CheckAuth would report the empty field as a second problem with
	// the same cause.
	if invalidText(r.problems[before:]) == "" {
		if key, text, fix := CheckAuth(&a); text != "" {
			r.addProblem(e.posWithin("auth", key), key, text, fix)
		}
	}
	r.uselessAuth(e, &a)
	e.Spec.Auth = &a
}

// readOAuth reads the object that other clients call oauth; true stands for a sign-in and false for none. Beside
// headersHelper it has no effect, in either order of the keys, and a warning says so.
func readOAuth(r *reader, e *Entry, v value) {
	if _, helped := e.positions["headersHelper"]; helped {
		r.warnBesideHelper(r.posOf(v.Value))
		return
	}
	a := messages.Auth{Type: messages.AuthOAuth}
	switch v.Value.Value.Kind() {
	// true asks for a sign-in and names no client.
	case 't':
	case 'f':
		a.Type = messages.AuthNone
	default:
		before := len(r.problems)
		if !r.readObject(v, `write {"clientId": "…"}`, r.authKey(e, &a)) {
			return
		}
		if invalidText(r.problems[before:]) == "" {
			if key, text, fix := CheckAuth(&a); text != "" {
				// CheckAuth names the key auth, and the file says oauth.
				r.addProblem(e.posWithin("auth", key), strings.Replace(key, "auth", "oauth", 1), text, fix)
			}
		}
	}
	e.Spec.Auth = &a
}

// readHeadersHelper reads a line for the shell that prints headers. It replaces what oauth said and conflicts with any other
// auth of the entry.
func readHeadersHelper(r *reader, e *Entry, v value) {
	a := messages.Auth{Type: messages.AuthHelper}
	if r.readText(v, &a.Command) {
		if a.Command == "" {
			r.addProblem(r.posOf(v.Value), v.key, "it is empty", "write the command that prints the headers")
		}
		// The keys of an entry come in any order, so that oauth may have been read before.
		if old := e.Spec.Auth; old != nil && (old.Type == messages.AuthOAuth || old.Type == messages.AuthNone) {
			r.warnBesideHelper(e.posOf("auth"))
		} else if old != nil {
			r.addProblem(r.posOf(v.Value), v.key, "it says something else than auth", "remove one")
		}
		e.Spec.Auth = &a
		// The checks of auth report places by the keys of auth, and here the value stands under another key.
		r.positions["auth.command"] = r.posOf(v.Value)
		e.keyFor["auth.command"] = v.key
	}
}

// warnBesideHelper reports that oauth has no effect because the entry has a headersHelper.
func (r *reader) warnBesideHelper(at Pos) {
	r.addWarning(at, "oauth", "it does not count beside headersHelper", "remove one")
}

// readTokenVariable reads bearer_token_env_var, the name of a variable that holds a bearer token.
func readTokenVariable(r *reader, e *Entry, v value) {
	a := messages.Auth{Type: messages.AuthBearer}
	if r.readText(v, &a.FromEnv) {
		e.Spec.Auth = &a
	}
}

// authKey returns the function that reads one key of auth into a. It records the place of a value under the first key of its
// row, whatever name the file uses, so that later checks find it.
func (r *reader) authKey(e *Entry, a *messages.Auth) func(string, Pos, value) {
	return func(key string, at Pos, m value) {
		if isNull(m) || isRemark(key) {
			return
		}
		// Texts are the common case, and the table covers them.
		for i := range authTexts {
			t := &authTexts[i]
			if !slices.Contains(t.keys, key) {
				continue
			}
			e.positions["auth."+t.keys[0]] = r.posOf(m.Value)
			if t.lenient {
				r.readLenient(m, t.fieldOf(a))
			} else {
				r.readText(m, t.fieldOf(a))
			}
			return
		}
		switch key {
		case "command":
			r.authCommand(m, a)
		case "args":
			// command may already have set Args from its own list, and those come first. Args that are not nil tell that
			// Command is a program and no line for the shell, so an empty list must not become nil.
			if l, ok := r.readList(m, `write ["--flag", "value"]`, r.readLenient); ok {
				a.Args = append(slices.Clone(a.Args), l...)
				if a.Args == nil {
					a.Args = []string{}
				}
			}
		// The map replaces an earlier one as a whole, because a second key would be ambiguous.
		case "env":
			env := map[string]string{}
			if r.readObject(m, `write {"NAME": "value"}`, func(name string, _ Pos, v value) {
				var s string
				if r.readLenient(v, &s) {
					env[name] = s
				}
			}) {
				a.Env = env
			}
		case "timeout":
			r.readDuration(m, &a.Timeout)
		// The OAuth parameter is called scope, and many files use its name.
		case "scope", "scopes":
			r.readScopes(m, a)
		case "callbackPort", "callback_port":
			r.readPort(m, &a.CallbackPort)
		// Other clients have keys of their own here, which change no request.
		default:
			r.warnUnknown(m.key, key, at, authNames)
		}
	}
}

// authCommand reads a text, which is a line for the shell, or a list, which is a program with its arguments and sets Args.
func (r *reader) authCommand(v value, a *messages.Auth) {
	if v.Value.Value.Kind() != '[' {
		r.readText(v, &a.Command)
		return
	}
	words, ok := r.readList(v, `write ["program", "argument"]`, r.readLenient)
	switch {
	case !ok:
	// An empty list cannot be started, and would look like a missing command to CheckAuth.
	case len(words) == 0 || words[0] == "":
		r.addProblem(r.posOf(v.Value), v.key, "it names no program", `write ["program", "argument"]`)
	default:
		// Arguments of the key args, if it stood before this one, follow those of the list.
		a.Command, a.Args = words[0], append(slices.Clone(words[1:]), a.Args...)
		if a.Args == nil {
			a.Args = []string{}
		}
	}
}

// readScopes reads a list of scopes, or one text in which spaces separate them as in an OAuth request.
func (r *reader) readScopes(v value, a *messages.Auth) {
	if v.Value.Value.Kind() == '[' {
		if l, ok := r.readList(v, `write ["read", "write"]`, r.readText); ok {
			a.Scopes = l
		}
		return
	}
	var s string
	if r.readText(v, &s) {
		a.Scopes = strings.Fields(s)
	}
}

// readPort reads a whole number from 1 to 65535.
func (r *reader) readPort(v value, into *int) {
	// A port in quotes is refused like any other text.
	l, ok := literalOf(v.Value)
	var f float64
	if !ok || l.Kind() != '0' || json.Unmarshal(l, &f) != nil || f != math.Trunc(f) || f < 1 || f > 65535 {
		r.addProblem(r.posOf(v.Value), v.key, "this is no port", "write a number from 1 to 65535")
		return
	}
	*into = int(f)
}

// impliedAuth returns the type of auth that the keys imply; empty if they imply none, which CheckAuth then reports. A client
// with a secret or a key is ambiguous between a sign-in and client_credentials, so that its type must be written.
func impliedAuth(a *messages.Auth) string {
	switch {
	case a.APIKey != "":
		return messages.AuthAPIKey
	case a.Token != "":
		return messages.AuthBearer
	case a.TokenPath != "":
		return messages.AuthTokenFile
	// Only a sign-in of a person uses these keys; a lone client id is a public client's.
	case a.AuthURL != "" || a.ClientMetadataURL != "" || a.ClientID != "" && a.ClientSecret == "" && a.ClientKeyFile == "":
		return messages.AuthOAuth
	}
	return ""
}

// expandAuth expands the variables of auth in a copy, because the entry keeps what was written. In an entry that was merely
// found, a relative file begins at the project's directory, as cwd does.
func (r *resolver) expandAuth(s *messages.Spec) {
	if s.Auth == nil {
		return
	}
	a := *s.Auth
	s.Auth = &a
	found := s.Scope == messages.ScopeProject || s.Scope == messages.ScopeLocal
	for _, t := range authTexts {
		// The type decides what the other keys mean, and may not depend on the environment.
		if t.keys[0] == "type" {
			continue
		}
		v := t.fieldOf(&a)
		r.expandField("auth."+t.keys[0], v)
		// No shell reads these paths, so that "~/" is replaced here.
		if home, under := strings.CutPrefix(*v, "~/"); t.file && under && r.ctx.HomeDir != "" {
			*v = filepath.Join(r.ctx.HomeDir, home)
		}
		if t.file && found && *v != "" && r.ctx.ProjectDir != "" && !filepath.IsAbs(*v) {
			*v = filepath.Join(r.ctx.ProjectDir, *v)
		}
	}
	a.Scopes = slices.Clone(a.Scopes)
	for i := range a.Scopes {
		r.expandField("auth.scopes", &a.Scopes[i])
	}
	r.expandField("auth.command", &a.Command)
	a.Args = slices.Clone(a.Args)
	for i := range a.Args {
		r.expandField("auth.args", &a.Args[i])
	}
	a.Env = r.expandAll("auth.env", a.Env)
	// A remote server has no process of its own: Cwd is free to say where the command of its auth starts.
	if found && a.Command != "" {
		s.Cwd = r.ctx.ProjectDir
	}
}

// checkAuth checks the expanded values. It stops at a value that a variable left empty, because CheckAuth would then ask for a
// key that the person has written.
func (r *resolver) checkAuth(s *messages.Spec) {
	if s.Auth == nil {
		return
	}
	// The texts of the entry tell an empty result from a key that was never written.
	for _, t := range authTexts {
		key := "auth." + t.keys[0]
		v := *t.fieldOf(s.Auth)
		if v == "" && *t.fieldOf(r.entry.Spec.Auth) != "" {
			r.addProblem(key, "it is empty after expansion", "set the variable")
			return
		}
		r.checkNUL(key, v)
	}
	r.checkNUL("auth.command", s.Auth.Command)
	for _, a := range s.Auth.Args {
		r.checkNUL("auth.args", a)
	}
	// These two values go into a header unchanged.
	r.headerValue("auth.apiKey", s.Auth.APIKey)
	r.headerValue("auth.token", s.Auth.Token)
	// A variable may have brought a wrong address or a second source.
	if key, text, fix := CheckAuth(s.Auth); text != "" && s.Invalid == "" {
		r.addProblem(key, text, fix)
	}
}
