package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
)

// Policy says which commands may be run and which URLs may be reached. The zero value refuses nothing. What a deny list
// names is refused whatever is allowed; with an allow list, what it does not name is refused as well: an empty list
// that is not nil allows nothing.
//
// A pattern of a command is words with spaces between them: the program, and its arguments if there are more words. "npx"
// is npx with any arguments, "npx -y @acme/*" is npx with these two. As the last word, * and ** stand for any further
// arguments; the pattern * is every command. A program without a slash is one that PATH finds: to allow "npx" does not
// allow ./npx, and to deny "npx" denies it wherever it is. On Windows case and the endings .exe, .cmd and .bat do not count.
//
// Inside a word of an allow list, * stands for letters, digits and any of . _ + - ~ = and the comma. It ends at @ : / and
// everything else, and begins neither a word nor a part of one with a dot or a dash: "@acme/*" is no
// @acme/x@https://elsewhere.example/y, and "@acme/*@*" is a version and no file. ** stands for any text. In a deny list
// both do.
//
// A list of allowed commands bounds what else decides which code runs, unless it is *: the variables of an entry (AllowEnv),
// its directory (AllowCwd), and inheritEnv. What it cannot bound is the person's own environment, PATH, home directory and
// ~/.npmrc, nor what an allowed program does with its arguments.
//
// A pattern of a URL is [scheme://]host[:port][/path] with * for any part of the host or of the path, and for any port.
// "https://*.example.com/mcp*" allows that path of every host below example.com. What a pattern leaves out counts like
// this: no scheme is any, no path is any, and no port is the scheme's own in an allow list and any in a deny list. The
// URLs of auth count like that of the server, and so do proxies in variables.
//
// A deny list sees names, and neither what a shell command does nor where a name leads: only an allow list makes sure.
type Policy struct {
	AllowCommands []string `json:"allowCommands,omitzero"`
	DenyCommands  []string `json:"denyCommands,omitempty"`
	// AllowEnv lists the names of variables that an entry may set besides the harmless ones (steer.Harmless). A * stands for
	// any part of a name, but matches no name that steers which code runs (steer.Reason): such a name must be written out. **
	// allows every name, and inheritEnv. Case does not count.
	AllowEnv []string `json:"allowEnv,omitzero"`
	// AllowCwd lists the directories that an entry may name as its cwd, besides the home directory. A * ends at a slash, **
	// does not, and ~/ is the home directory.
	AllowCwd  []string `json:"allowCwd,omitzero"`
	AllowURLs []string `json:"allowURLs,omitzero"`
	DenyURLs  []string `json:"denyURLs,omitempty"`
	// Source names the origin of the lists, a file, in refusals.
	Source string `json:"-"`
	// home is the person's home directory. Merge sets it for lists from a file; without it ~ and the home directory match
	// nothing.
	home string
}

// Empty reports whether a policy refuses nothing. A list that is empty but not nil is not Empty, because it allows nothing.
func (p Policy) Empty() bool {
	return p.AllowCommands == nil && len(p.DenyCommands) == 0 && p.AllowURLs == nil && len(p.DenyURLs) == 0 && p.AllowEnv == nil &&
		p.AllowCwd == nil
}

// Refuses returns the reason why a spec may not be started: the rule, what it is about, and the line of a policy that would
// allow it. It is empty if the spec may start. The command that auth runs counts like that of a server.
func (p Policy) Refuses(s messages.Spec) string {
	for _, c := range commandsOf(s) {
		for _, rule := range []func(commandLine) string{p.refusesCommand, p.refusesEnv, p.refusesProxy, p.refusesDirectory} {
			if text := rule(c); text != "" {
				return text
			}
		}
	}
	for _, raw := range urlsOf(s) {
		if rule := p.RefusesURL(raw); rule != "" {
			return rule
		}
	}
	return ""
}

// Refusal returns the first refusal of several policies; a spec may start only if all of them agree.
func Refusal(s messages.Spec, policies ...Policy) string {
	for _, p := range policies {
		if rule := p.Refuses(s); rule != "" {
			return rule
		}
	}
	return ""
}

// originText returns " of FILE" for the middle of a sentence, or nothing if the origin is unknown.
func (p Policy) originText() string {
	if p.Source == "" {
		return ""
	}
	return " of " + messages.Line(p.Source, 200)
}

// allowingLine returns the end of a refusal: the line of a policy that would allow what was refused, for the person to copy or
// to ask for.
func allowingLine(list, pattern string) string {
	return `; to allow it: "` + list + `": [` + quoteWhole(pattern) + "]"
}

// boundsCommands reports whether allowCommands restricts anything. With * in it every command is allowed, and then also the
// variables and directories that decide which code a command runs.
func (p Policy) boundsCommands() bool {
	return p.AllowCommands != nil && !slices.Contains(p.AllowCommands, "*")
}

// refusesEnv checks the variables of a command. They are restricted by allowEnv, or by an allowCommands without allowEnv,
// because an allowed program with NODE_OPTIONS runs any code.
func (p Policy) refusesEnv(c commandLine) string {
	if !p.boundsCommands() && p.AllowEnv == nil || slices.Contains(p.AllowEnv, "**") {
		return ""
	}
	// The refusal names the list that caused it.
	list := "allowCommands"
	if p.AllowEnv != nil {
		list = "allowEnv"
	}
	// The inherited environment is not listed in the entry, so that no list of names can bound it.
	if c.inherit {
		return list + p.originText() + " does not allow inheritEnv, which passes on variables that decide which code runs" + allowingLine("allowEnv", "**")
	}
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		if !p.allowsVariable(name, c.env[name]) {
			text := list + p.originText() + " does not allow the variable " + quoteShort(name)
			if why, steers := steer.Reason(name); steers {
				text += ", which changes " + why
			}
			return text + allowingLine("allowEnv", name)
		}
	}
	return ""
}

// refusesProxy checks the proxies in the variables of a command by the lists of URLs, because all requests of the process go to
// them.
func (p Policy) refusesProxy(c commandLine) string {
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		proxy, upper := c.env[name], strings.ToUpper(name)
		// NO_PROXY names hosts that are reached directly, and is no address.
		if proxy == "" || !strings.HasSuffix(upper, "_PROXY") || upper == "NO_PROXY" {
			continue
		}
		// Programs read a proxy without a scheme as http.
		if !strings.Contains(proxy, "://") {
			proxy = "http://" + proxy
		}
		if rule := p.RefusesURL(proxy); rule != "" {
			return rule
		}
	}
	return ""
}

// allowsVariable reports whether an entry may set a variable to a value: a harmless one always, others by AllowEnv.
func (p Policy) allowsVariable(name, value string) bool {
	if steer.Harmless(name) && steer.HarmlessValue(name, value) {
		return true
	}
	_, steers := steer.Reason(name)
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(p.AllowEnv, func(pattern string) bool {
		pattern = strings.ToUpper(pattern)
		return pattern == upper || !steers && messages.MatchPattern(pattern, upper)
	})
}
