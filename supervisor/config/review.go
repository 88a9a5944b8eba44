package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// Remark is one consequence of an entry, which the approval screen shows to the person who is to approve it.
type Remark struct {
	// Danger marks what can hand out something of the person, or run code that the entry does not show.
	Danger bool `json:"danger,omitempty"`
	// Text is a clause in which every part of the entry is escaped by [Visible].
	Text string `json:"text"`
	// Keys holds the paths of the entry that the clause is about: "args[2]", "env.PATH". The screen marks their lines.
	Keys []string `json:"keys,omitempty"`
}

// Review finds out what an entry does, as far as its words show. ReviewOf makes one from a set; the caller may fill
// Shared before it calls Remarks.
type Review struct {
	// Name is that of the server, Scope that of its file.
	Name  string
	Scope messages.Scope
	// Project is the directory from which relative paths count; empty for an entry that is not of a project.
	Project string
	// Variables and Files are copied from the Binding.
	Variables, Files []string
	// Hides is the scope of the person's own server of the same name, which this entry would replace; empty if there is
	// none. Others holds the names of the person's own servers.
	Hides  messages.Scope
	Others []string
	// Shared says why other users of the machine can change the file or the project; empty if they cannot.
	Shared string

	// entry is the entry under review and remarks what was found so far. Remarks sets both on a copy of the Review.
	entry   json.RawMessage
	remarks []Remark
}

// ReviewOf returns the review of a candidate of a set. The candidate must have a Binding.
func ReviewOf(set Set, c Candidate) Review {
	b := *c.Binding
	v := Review{Name: b.Server, Scope: c.Spec.Scope, Project: b.Project, Variables: b.Variables, Files: b.Files}
	// The last candidate of a name has no binding if it needs no approval: it is the person's own.
	if all := set.Found[b.Server]; len(all) > 0 && all[len(all)-1].Binding == nil {
		v.Hides = all[len(all)-1].Spec.Scope
	}
	// The look-alikes of these names matter, because the person trusts them.
	for _, name := range slices.Sorted(maps.Keys(set.Specs)) {
		if !merelyFound(set.Specs[name].Scope) {
			v.Others = append(v.Others, name)
		}
	}
	return v
}

// Remarks returns the consequences of an entry in its JSON form, the dangerous ones first. It reads the entry as part
// of a file of the person's own, so that variables stay as written and no claim of the entry is dropped unseen.
func (v Review) Remarks(entry json.RawMessage) []Remark {
	v.entry, v.remarks = entry, nil
	// The entry is wrapped into a file, so that the reader of files checks it and no second reader exists.
	text, err := json.Marshal(map[string]map[string]json.RawMessage{wrappers[0]: {v.Name: entry}})
	if err != nil {
		return []Remark{{Danger: true, Text: "it cannot be read"}}
	}
	e := Parse(File{Path: "the entry", Scope: messages.ScopeUser, Data: text}).Servers[v.Name]
	s := e.Spec
	v.reviewName()
	// This remark concerns the place of the file and no line of the entry.
	if v.Shared != "" {
		v.addRemark(true, "other users can change what it runs after your yes: "+Visible(v.Shared))
	}
	if s.Invalid != "" {
		v.addRemark(true, "it cannot be used as it is: "+Visible(messages.Line(s.Invalid, 400)))
	}
	v.reviewHidden()
	v.reviewProcess(e)
	v.reviewRemote(s)
	v.reviewAuth(s)
	v.reviewClaims(e)
	// A stable sort keeps the order of the reviews within each kind.
	slices.SortStableFunc(v.remarks, func(a, b Remark) int {
		switch {
		case a.Danger == b.Danger:
			return 0
		case a.Danger:
			return -1
		}
		return 1
	})
	return v.remarks
}

// addRemark adds one consequence; keys are the lines to mark.
func (v *Review) addRemark(danger bool, text string, keys ...string) {
	v.remarks = append(v.remarks, Remark{danger, text, keys})
}

// reviewName compares the name with those of the person's own servers, because rules and habits go by names.
func (v *Review) reviewName() {
	if v.Hides != "" {
		v.addRemark(true, "hides your own server of this name ("+string(v.Hides)+" scope); your allow rules for it do not count for this one")
	}
	for _, other := range v.Others {
		if other != v.Name && Skeleton(other) == Skeleton(v.Name) {
			v.addRemark(true, "its name "+quoteVisible(v.Name)+" looks like your own server "+quoteVisible(other)+" and is another one")
		}
	}
	if len(disguisedOffsets(v.Name)) > 0 {
		v.addRemark(true, "its name "+quoteVisible(v.Name)+" has letters of another script that look like others")
	}
}

// reviewHidden looks in every text of the entry for what a reader would miss: invisible characters, letters that look
// like others, long gaps, and keys that differ in case alone.
func (v *Review) reviewHidden() {
	var top map[string]json.RawMessage
	// An entry that is no object has no keys, and is invalid anyway.
	_ = rawjson.Unmarshal(v.entry, &top)
	folded := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		// A key without an effect may still persuade a reader.
		if _, known := fields[key]; !known && !isRemark(key) {
			v.addRemark(false, "does not count here: "+quoteVisible(key), key)
		}
		// Programs that ignore case take one of the two, and a reader does not see which.
		if first, twice := folded[strings.ToLower(key)]; twice {
			v.addRemark(true, "has two keys that are alike but for case: "+quoteVisible(first)+" and "+quoteVisible(key), first, key)
		}
		folded[strings.ToLower(key)] = key
	}
	eachText(v.entry, func(path, text string) {
		if messages.CountHidden(text) > 0 {
			v.addRemark(true, "holds characters that nobody sees, shown as \\u: "+Visible(path), path)
		}
		if len(disguisedOffsets(text)) > 0 {
			v.addRemark(true, "holds letters that look like others, shown as \\u: "+Visible(path), path)
		}
		// Twenty spaces or forty lines push the rest of a text out of a terminal window.
		if strings.Contains(text, strings.Repeat(" ", 20)) || strings.Count(text, "\n") > 40 {
			v.addRemark(true, "holds a long gap, after which more follows: "+Visible(path), path)
		}
	})
}

// eachText calls f for every text of a value with its path, and for every key with the path of its value. Keys are
// visited in sorted order.
func eachText(raw json.RawMessage, f func(path, text string)) {
	var v any
	if rawjson.Unmarshal(raw, &v) != nil {
		return
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case string:
			f(path, v)
		case []any:
			for i, el := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), el)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				// A key can hide text as well as a value can.
				f(joinPath(path, key), key)
				walk(joinPath(path, key), v[key])
			}
		}
	}
	walk("", v)
}

// reviewProcess describes the process of a stdio server: its command line, directory, variables and rights.
func (v *Review) reviewProcess(e Entry) {
	s := e.Spec
	if s.Kind() != messages.Stdio {
		return
	}
	// The directory is computed as the launcher will, for the sentence that shows it.
	dir := v.Project
	switch {
	case s.Cwd != "" && (filepath.IsAbs(s.Cwd) || dir == ""):
		dir = s.Cwd
	case s.Cwd != "":
		dir = filepath.Join(dir, s.Cwd)
	}
	where := ""
	if dir != "" {
		where = " in " + Visible(dir)
	}
	v.addRemark(false, "runs "+commandWords(s.Command, s.Args)+where, e.spelledKey("command"))
	if leavesProject(s.Cwd, v.Project) {
		v.addRemark(true, "runs outside of the project, in "+Visible(s.Cwd), e.spelledKey("cwd"))
	}
	// The words before an argument may be the program that reads it (npx, env).
	for i, word := range s.Args {
		if why := argumentEffect(s.Command, s.Args[:i], word); why != "" {
			v.addRemark(true, why, e.argumentKey(i))
		}
	}
	v.reviewVariables(s.Env, e.spelledKey("env"), "")
	// The values are not known to the reader, and may be secrets of the person.
	names := variablesIn(append(slices.Concat([]string{s.Command, s.Cwd}, s.Args), slices.Collect(maps.Values(s.Env))...)...)
	if len(names) > 0 {
		v.addRemark(true, "may read the variables "+Visible(strings.Join(names, ", ")))
	}
	if s.InheritEnv != nil && *s.InheritEnv {
		v.addRemark(true, "may read all your variables (inheritEnv)", "inheritEnv")
	}
	if s.MayControl {
		v.addRemark(true, "may call every other server and change what runs, through the control socket of mcpvisor up (mayControl)", "mayControl")
	}
	// A file outside of the project is one of the person's, which the server would get.
	if e.EnvFile != "" {
		text := "takes variables from " + Visible(e.EnvFile)
		if len(v.Variables) > 0 {
			text += ": " + Visible(strings.Join(v.Variables, ", "))
		}
		v.addRemark(leavesProject(e.EnvFile, v.Project) || strings.HasPrefix(e.EnvFile, "~"), text, "envFile")
	}
	// The approval binds the files, and the person should know that their content counts.
	if len(v.Files) > 0 {
		v.addRemark(false, "names files of the project, whose content may change: "+Visible(strings.Join(v.Files, ", ")))
	}
}

// reviewVariables reports variables whose names steer which code a program runs. whose ends the sentence about a
// command of auth.
func (v *Review) reviewVariables(env map[string]string, key, whose string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if why, steers := steer.Reason(name); steers {
			v.addRemark(true, "sets "+Visible(name)+whose+", which changes "+why, key+"."+name)
		}
	}
}

// reviewRemote describes a remote server: its URL, the variables and headers that are sent to it, encryption and
// certificates.
func (v *Review) reviewRemote(s messages.Spec) {
	if s.URL == "" {
		return
	}
	host := hostOf(s.URL)
	v.addRemark(false, "dials "+Visible(s.URL), "url")
	if names := variablesIn(append([]string{s.URL}, slices.Collect(maps.Values(s.Headers))...)...); len(names) > 0 {
		// The entry may spell the key in either way, and a path that does not exist marks nothing.
		keys := []string{"url"}
		for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
			keys = append(keys, "headers."+name, "http_headers."+name)
		}
		v.addRemark(true, "sends "+Visible(strings.Join(names, ", "))+" to "+host, keys...)
	}
	// The names alone are shown: the lines of the entry below show the values.
	if len(s.Headers) > 0 {
		v.addRemark(false, "sends the headers "+Visible(strings.Join(slices.Sorted(maps.Keys(s.Headers)), ", "))+" to "+host)
	}
	// A URL with a variable in it may become any address, and an unreadable one counts as unencrypted.
	if u, err := url.Parse(s.URL); err != nil || (u.Scheme == "http" || u.Scheme == "ws") && !addresses.ThisMachine(u.Hostname()) {
		v.addRemark(true, "is reached without encryption: everybody on the way reads and changes what is sent to "+host, "url")
	}
	if s.AllowPlainHTTP {
		v.addRemark(true, "lets credentials go to "+host+" without encryption (allowPlainHTTP)", "allowPlainHTTP")
	}
	// Each key of tls changes who is believed or what is shown to the server.
	if t := s.TLS; t != nil {
		if t.CAFile != "" {
			v.addRemark(true, "trusts the authorities in "+Visible(t.CAFile)+" for "+host, "tls.caFile")
		}
		if t.KeyFile != "" || t.CertFile != "" {
			v.addRemark(true, "shows "+host+" the certificate "+Visible(t.CertFile)+" with the key "+Visible(t.KeyFile), "tls.certFile", "tls.keyFile")
		}
		if t.ServerName != "" {
			v.addRemark(true, "takes a certificate for "+Visible(t.ServerName)+" in the place of one for "+host, "tls.serverName")
		}
	}
}

// reviewAuth describes credentials: the command, file or variable that gives them, and the host that receives them. Any
// address of the sign-in on another host than the server's is dangerous, because the credentials go there.
func (v *Review) reviewAuth(s messages.Spec) {
	a := s.Auth
	if a == nil || s.URL == "" {
		return
	}
	host := hostOf(s.URL)
	if a.Command != "" {
		words := commandWords(a.Command, a.Args)
		// Without a list of arguments the command is a line for a shell.
		if a.Args == nil {
			words = "the line " + quoteVisible(a.Command) + " of a shell"
		}
		v.addRemark(true, "runs for its credentials "+words+", and sends what it prints to "+host, "auth.command", "auth.args", "headersHelper")
		v.reviewVariables(a.Env, "auth.env", " for that")
	}
	// sends reports the variables and the file behind one key of auth.
	sends := func(texts []string, file bool, to, key string) {
		if file && texts[0] != "" {
			v.addRemark(true, "sends the content of the file "+Visible(texts[0])+" to "+to, key)
		}
		if names := variablesIn(texts...); len(names) > 0 {
			v.addRemark(true, "sends "+Visible(strings.Join(names, ", "))+" to "+to, key)
		}
	}
	sends([]string{a.APIKey}, false, host, "auth.apiKey")
	sends([]string{a.Token}, false, host, "auth.token")
	sends([]string{a.TokenPath}, true, host, "auth.tokenPath")
	if a.FromEnv != "" {
		v.addRemark(true, "sends "+Visible(a.FromEnv)+" to "+host, "auth.fromEnv", "bearer_token_env_var")
	}
	// Secrets of the client go to the token endpoint, which the server itself names if the entry does not.
	to := "the authorization server that " + host + " names"
	for _, at := range []string{a.Issuer, a.TokenURL} {
		if at != "" {
			to = hostOf(at)
		}
	}
	sends([]string{a.ClientSecret, a.ClientID}, false, to, "auth.clientSecret")
	if a.ClientKeyFile != "" {
		v.addRemark(true, "signs in at "+to+" with the private key in "+Visible(a.ClientKeyFile), "auth.clientKeyFile")
	}
	// Each address takes part in the sign-in in a way of its own, which the text names.
	for _, at := range []struct{ url, key, what string }{
		{a.Issuer, "auth.issuer", "signs in at "}, {a.TokenURL, "auth.tokenUrl", "gets its tokens from "},
		{a.AuthURL, "auth.authUrl", "opens in the browser "}, {a.ClientMetadataURL, "auth.clientMetadataUrl", "calls itself "},
		{a.Resource, "auth.resource", "asks for tokens for "}, {a.RedirectURL, "auth.redirectUrl", "has the browser end at "},
	} {
		if at.url != "" {
			v.addRemark(hostOf(at.url) != host, at.what+Visible(at.url), at.key)
		}
	}
	if len(a.Scopes) > 0 {
		v.addRemark(false, "asks for the scopes "+Visible(strings.Join(a.Scopes, " ")), "auth.scopes")
	}
}

// grants maps keys of an entry that give it more rights when they are true to the clause that says so.
var grants = map[string]string{
	"mayControl": "may command mcpvisor itself (mayControl)",
}

// reviewClaims describes what the entry says about itself: trust, rights, isolation, sizes.
func (v *Review) reviewClaims(e Entry) {
	if e.Spec.Trusted {
		text := "says that it is trusted"
		if merelyFound(v.Scope) {
			text += ", which does not count in this file"
		}
		v.addRemark(true, text, "trusted")
	}
	var top map[string]json.RawMessage
	_ = rawjson.Unmarshal(v.entry, &top)
	// Only the literal true counts, because the reader refuses every other form.
	for _, key := range slices.Sorted(maps.Keys(grants)) {
		if string(top[key]) == "true" {
			v.addRemark(true, grants[key], key)
		}
	}
	if i := e.Spec.Isolation; i != nil {
		if i.BestEffort {
			v.addRemark(true, "starts without the isolation that this machine cannot give (bestEffort)", "isolation.bestEffort")
		} else {
			v.addRemark(false, "is isolated: "+Visible(isolation.WantedText(i)), "isolation")
		}
	}
	// A message is held in memory while it is read, so that a bound above 1 GiB can exhaust the machine.
	if e.Spec.MaxMessage > 1<<30 {
		v.addRemark(true, fmt.Sprintf("may send messages of %d bytes", e.Spec.MaxMessage), "maxMessage")
	}
	if e.Spec.Disabled {
		v.addRemark(false, "is disabled", "disabled", "enabled")
	}
}

// commandWords returns a command line as a person reads it, with quotes around words that are more than plain letters.
func commandWords(command string, args []string) string {
	words := []string{quoteWord(command)}
	for _, a := range args {
		words = append(words, quoteWord(a))
	}
	return strings.Join(words, " ")
}

// quoteWord returns one word of a command line. A word that begins with ${ stays without quotes, because mcpvisor and
// no shell expands it.
func quoteWord(s string) string {
	shown := Visible(s)
	if s == "" || shown != s || strings.ContainsAny(s, " \t'|&;<>()*?[]#~!{}`") && !strings.HasPrefix(s, "${") {
		return `"` + shown + `"`
	}
	return s
}

// hostOf returns the host of a URL as written, with its port. If the host is itself a variable the result quotes the
// whole text.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "what " + quoteVisible(text) + " names"
	}
	return Visible(u.Host)
}

// leavesProject reports whether a path, as written, leads out of the project. A path with an unknown variable counts as
// leading out.
func leavesProject(path, project string) bool {
	switch {
	case path == "" || project == "":
		return false
	case strings.HasPrefix(path, "${workspaceFolder}"), strings.HasPrefix(path, "${CLAUDE_PROJECT_DIR}"):
		_, rest, _ := strings.Cut(path, "}")
		path = filepath.Join(project, rest)
	case strings.HasPrefix(path, "~"), strings.Contains(path, "${"):
		return true
	case !filepath.IsAbs(path):
		path = filepath.Join(project, path)
	}
	rel, err := filepath.Rel(project, filepath.Clean(path))
	return err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// variablesIn returns the names of environment variables in ${…} that texts take, also those in defaults, sorted. Names
// of places are left out.
func variablesIn(texts ...string) (names []string) {
	for _, s := range texts {
		for {
			_, rest, found := strings.Cut(s, "${")
			if !found {
				break
			}
			s = rest
			// The name ends at the brace or at the ":-" of a default, whichever comes first.
			end := strings.IndexAny(rest, "}")
			// The text goes on right behind the name, so that variables inside the default are found, too.
			if i := strings.Index(rest, ":-"); i >= 0 && (end < 0 || i < end) {
				end = i
			}
			if end < 0 {
				continue
			}
			name := strings.TrimPrefix(rest[:end], "env:")
			if isIdentifier(name) && !slices.Contains(pathVariables, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pathVariables holds the names that stand for places and reveal no secret of the person.
var pathVariables = []string{"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "CLAUDE_PROJECT_DIR", "HOME", "USER"}
