package plan

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Ref is the way in which a person names a server: by its full name or a short one, perhaps with a version.
type Ref struct {
	// Name is namespace/server, or a word without a slash.
	Name string
	// Version is empty for the latest.
	Version string
}

// Full reports whether the name has a namespace.
func (r Ref) Full() bool { return strings.Contains(r.Name, "/") }

// wordPattern matches a short name.
var wordPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })

// ParseRef reads NAME or NAME@VERSION. The cause of its errors is ErrName.
func ParseRef(text string) (Ref, error) {
	name, version, hasVersion := strings.Cut(text, "@")
	ok := wordPattern().MatchString(name)
	if strings.Contains(name, "/") {
		ok = fullNamePattern().MatchString(name)
	}
	switch {
	case !ok || len(name) > maxName:
		return Ref{}, planError(ErrName, "a server of a registry is not called "+messages.Line(text, 80),
			"write namespace/server, such as io.github.owner/server, or its last part if that is unique")
	case hasVersion && (version == "" || len(version) > 255 || strings.ContainsFunc(version, func(r rune) bool {
		return r <= 0x20 || r >= 0x7f || strings.ContainsRune(`/\@%?#`, r)
	})):
		return Ref{}, planError(ErrName, "the version of "+messages.Line(text, 80)+" is none", "write NAME@1.2.3, or NAME for the latest")
	}
	// @latest is the same as no version.
	return Ref{name, strings.TrimPrefix(version, "latest")}, nil
}

// affixes lists the parts that publishers put around the distinguishing word of a name.
var affixes = []struct{ prefix, suffix string }{
	{"mcp-server-", ""}, {"server-", ""}, {"mcp-", ""}, {"", "-mcp-server"}, {"", "-server"}, {"", "-mcp"},
}

// genericNames holds words that distinguish no server; LocalName then uses the namespace.
var genericNames = []string{"", "mcp", "server", "mcpserver", "mcp-server"}

// LocalName returns the name of a server in a configuration: the last part of its registry name, without the words that
// the names of most servers have in common.
//
//	io.github.github/github-mcp-server   github
//	com.notion/mcp                       notion
func LocalName(full string) string {
	namespace, name, _ := strings.Cut(full, "/")
	base := trimAffixes(name)
	if slices.Contains(genericNames, strings.ToLower(base)) {
		// The last label of a reversed domain is the most specific one.
		labels := strings.Split(namespace, ".")
		base = trimAffixes(labels[len(labels)-1])
	}
	if slices.Contains(genericNames, strings.ToLower(base)) {
		// The whole namespace is the last resort before a fixed word.
		base = trimAffixes(strings.ReplaceAll(namespace, ".", "-"))
	}
	if base == "" {
		return "server"
	}
	return base
}

// trimAffixes returns a name without affixes, in letters that names of tools can have.
func trimAffixes(name string) string {
	name = strings.ReplaceAll(name, "_", "-")
	// Removing one affix may uncover another: mcp-x-server.
	for changed := true; changed; {
		changed = false
		for _, a := range affixes {
			lower := strings.ToLower(name)
			if strings.HasPrefix(lower, a.prefix) && strings.HasSuffix(lower, a.suffix) &&
				len(name) > len(a.prefix)+len(a.suffix) {
				name, changed = name[len(a.prefix):len(name)-len(a.suffix)], true
			}
		}
	}
	// Other signs would need a hash in the names of tools.
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '-' }), "-")
}

// Matches reports whether a short name may mean a server: it is the last part of its name, with or without affixes, or
// its local name. All matching servers count alike, so that a publisher who takes a short name first does not get what
// was meant for a better-known server.
func Matches(short, full string) bool {
	// The namespace does not count: it tells who published the server.
	_, last, _ := strings.Cut(full, "/")
	return strings.EqualFold(short, last) || strings.EqualFold(trimAffixes(short), trimAffixes(last)) ||
		strings.EqualFold(short, LocalName(full))
}

// Unique returns the only one of the names that a short name means. complete is false if there are more names than
// these, so that uniqueness cannot be known. The cause of its errors is ErrName.
func Unique(short string, full []string, complete bool) (string, error) {
	var matching []string
	for _, name := range full {
		if Matches(short, name) && !slices.Contains(matching, name) {
			matching = append(matching, name)
		}
	}
	slices.Sort(matching)
	switch {
	case len(matching) > 1:
		return "", planError(ErrName, "several servers are called "+messages.Line(short, 80)+": "+
			messages.Line(strings.Join(matching, ", "), 600), "write the whole name")
	// A page that was not read may have a second match.
	case !complete:
		return "", planError(ErrName, "too many servers have "+messages.Line(short, 80)+" in their names to tell which one is meant",
			"write the whole name")
	// The names that contain the word help a person who misremembers it.
	case len(matching) == 0 && len(full) > 0:
		return "", planError(ErrName, "no server is called "+messages.Line(short, 80)+"; near it: "+
			messages.Line(strings.Join(full[:min(len(full), 10)], ", "), 600), "write the whole name")
	case len(matching) == 0:
		return "", planError(ErrName, "the registry has no server called "+messages.Line(short, 80),
			"mcpvisor search finds servers by a part of their names")
	}
	return matching[0], nil
}
