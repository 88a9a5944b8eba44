package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// Context holds everything besides its files that the meaning of a configuration depends on.
type Context struct {
	// Lookup gives the value of an environment variable, and whether it is set. nil: none is set.
	Lookup func(name string) (string, bool)
	// ProjectDir stands in for the Dir of files that have none. Both empty: neither ${workspaceFolder} nor a relative
	// cwd is replaced.
	ProjectDir string
	// HomeDir replaces ${userHome}.
	HomeDir string
	// ReadFile gives the content of a regular file of variables (envFile), MaxEnvFile bytes at most, or why it cannot be read, as
	// a clause. nil: such files are not read, and entries that name one are told so.
	ReadFile func(path string) (data []byte, why string)
	// Sums begins a reading of files of the project: what it gives tells the SHA-256 of a regular one in hexadecimal digits, and
	// false if there is none. nil: approvals bind no files.
	Sums func() func(path string) (sum string, ok bool)
	// AllowedTransports, if not nil, lists the only kinds that may be configured; a server of another kind is invalid.
	AllowedTransports []messages.TransportKind
	// Machine says what the machine on which the servers will run can enforce of an isolation; a server that asks for more is
	// invalid. nil: only its start will tell.
	Machine func(messages.Isolation) isolation.Capabilities
	// policies are those of the files.
	policies []Policy
}

// Set holds everything that all files together say.
type Set struct {
	// Specs are the servers by name. One with Invalid or Hold set exists and is not started.
	Specs map[string]messages.Spec
	// Found are, by server, its entries where a file that was merely found has one, the one that counts first: those of such
	// files, and below them the first that needs no approval. Who holds back what nobody approved takes the first that may start.
	Found map[string][]Candidate
	// Waiting are, by server, the entries that wait for an approval, and Stale the approved ones of which something else has
	// changed, with what, in clauses. Package discover fills them in.
	Waiting map[string]Candidate
	Stale   map[string][]string
	// Problems are those of every file and server, sorted by file and line.
	Problems []Problem
	// Shadowed are the entries that another one hides, sorted by server.
	Shadowed []Shadow
	// Policies are those of managed files. The supervisor asks them before it starts a server: nothing here is refused by them.
	Policies []Policy
	// Permissions are the rules about tools of all files.
	Permissions access.Rules
	// SamplingCommand is the program that answers servers which ask for the model, and its arguments; nil if none is
	// configured. Files of the project are not asked.
	SamplingCommand []string
	// Audit is the record that the files ask for; nil if none says anything of one.
	Audit *Audit
	// Registry is the base URL of the MCP registry to install from; empty if no file names one.
	Registry string
	// Pin says what is done about tools that change.
	Pin Pin
	// Files are the files that were merged, lowest precedence first.
	Files []Source
}

// Source is one merged file.
type Source struct {
	Path  string
	Scope messages.Scope
	// Servers counts its entries, shadowed and bad ones included.
	Servers int
	// Broken means that nothing could be read from it.
	Broken bool
	// Exclusive means that no server of another file counts beside it.
	Exclusive bool
	// Program is whose form the file has; empty for our own.
	Program string
}

// Shadow is an entry that does not count because another one does.
type Shadow struct {
	Server string
	// Winner and Loser are the files.
	Winner, Loser string
	// Reason says why, as a clause.
	Reason string
}

// Unreadable reports whether there were files and not one could be read: nothing is configured then by mistake, not by
// choice.
func (s Set) Unreadable() bool {
	return len(s.Files) > 0 && !slices.ContainsFunc(s.Files, func(f Source) bool { return !f.Broken })
}

// rank orders the scopes by precedence. The managed scope is not among them: it is exclusive.
var rank = map[messages.Scope]int{
	messages.ScopeUser: 1, messages.ScopeProject: 2, messages.ScopeLocal: 3, messages.ScopeDynamic: 4,
	messages.ScopeRuntime: 5,
}

// Merge decides which entry of each name counts, expands its variables and checks what only then can be checked. Within
// one scope the later file of the argument wins.
func Merge(files []Parsed, ctx Context) Set {
	set := Set{Specs: map[string]messages.Spec{}, Found: map[string][]Candidate{}}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b Parsed) int { return rank[a.Scope] - rank[b.Scope] })
	managed := ""
	for _, f := range files {
		set.Files = append(set.Files, Source{f.Path, f.Scope, len(f.Servers), f.Broken, f.isExclusive(), f.Program})
		set.Problems = append(set.Problems, f.Problems...)
		if f.isExclusive() && managed == "" {
			managed = f.Path
		}
		if f.Policy != nil {
			own := *f.Policy
			own.home = ctx.HomeDir
			set.Policies = append(set.Policies, own)
		}
	}
	ctx.policies = set.Policies
	set.Permissions = permissionsOf(files)
	set.SamplingCommand = samplingOf(files, managed != "")
	set.Audit = auditOf(files)
	set.Pin = pinOf(files)
	set.Registry = registryOf(files, managed != "")
	asks, off := asksForFiles(files), disabledBy(files, managed != "")
	type layer struct {
		entry Entry
		dir   string
	}
	winners, layers := map[string]Entry{}, map[string][]layer{}
	for _, f := range files {
		for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
			if managed != "" && f.Scope != messages.ScopeManaged {
				set.Shadowed = append(set.Shadowed, Shadow{name, managed, f.Path, "a managed configuration is exclusive"})
				continue
			}
			if loser, ok := winners[name]; ok {
				set.Shadowed = append(set.Shadowed, Shadow{name, f.Path, loser.Spec.Source, outranksText(f.Scope, loser.Spec.Scope)})
			}
			winners[name] = f.Servers[name]
			layers[name] = append(layers[name], layer{f.Servers[name], f.Dir})
		}
	}
	sum := func(string) (string, bool) { return "", false }
	if ctx.Sums != nil {
		sum = ctx.Sums()
	}
	for _, name := range slices.Sorted(maps.Keys(winners)) {
		for i, l := range slices.Backward(layers[name]) {
			own := ctx
			own.ProjectDir = cmp.Or(l.dir, ctx.ProjectDir)
			c := own.resolveEntry(l.entry, sum)
			c.Asks = c.Asks || asks
			if i == len(layers[name])-1 {
				disableSpec(&c.Spec, off[name])
				set.Specs[name] = c.Spec
				set.Problems = own.joinProblems(set.Problems, c.Problems)
				if !merelyFound(c.Spec.Scope) {
					break
				}
			}
			if set.Found[name] = append(set.Found[name], c); !merelyFound(c.Spec.Scope) {
				break
			}
		}
	}
	set.Problems = append(set.Problems, unknownServerRules(set.Permissions, slices.Sorted(maps.Keys(set.Specs)))...)
	sortProblems(set.Problems)
	slices.SortStableFunc(set.Shadowed, func(a, b Shadow) int { return strings.Compare(a.Server, b.Server) })
	return set
}

func outranksText(winner, loser messages.Scope) string {
	if winner == loser {
		return "the later " + string(winner) + " file wins"
	}
	return "the " + string(winner) + " scope wins over the " + string(loser) + " scope"
}

// joinProblems are the problems of the files and those of an entry's values. What a file says of a variable that stands in for
// something of another program is one problem with the variable that is not set, and none if it is.
func (c Context) joinProblems(said, found []Problem) []Problem {
	said = slices.DeleteFunc(said, func(w Problem) bool {
		if w.Variable == "" {
			return false
		}
		for i := range found {
			f := &found[i]
			if f.Variable == w.Variable && f.Server == w.Server && f.File == w.File && f.Line == w.Line && f.Col == w.Col {
				f.Key, f.Text, f.Fix = w.Key, w.Text+", and it is not set", w.Fix
				return true
			}
		}
		if c.Lookup == nil {
			return false
		}
		_, set := c.Lookup(w.Variable)
		return set
	})
	return append(said, found...)
}
