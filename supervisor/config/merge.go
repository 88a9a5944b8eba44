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

// Context holds everything besides the files that the meaning of a configuration depends on. Its zero value expands no variable
// and reads no file.
type Context struct {
	// Lookup returns the value of an environment variable, and whether it is set. With nil, none is set.
	Lookup func(name string) (string, bool)
	// Program returns the file that a command without a directory is found as, and counts for OmitShared alone. With nil, a command is
	// the same file everywhere.
	Program func(command string) string
	// ProjectDir counts for files whose Dir is empty. If both are empty, ${workspaceFolder} is copied as it stands and a
	// relative cwd stays relative.
	ProjectDir string
	// HomeDir is the value of ${userHome} and of "~/" in paths.
	HomeDir string
	// ReadFile returns the content of a regular file of variables (envFile), at most MaxEnvFile bytes, or says as a clause why
	// it cannot be read. With nil, such files are not read, and entries that name one get a warning.
	ReadFile func(path string) (data []byte, why string)
	// Sums is called once by a Merge. The function that it returns gives the SHA-256 of a regular file of the project in
	// hexadecimal digits, and false if there is none, and may keep sums between its calls. With nil, approvals bind no files.
	Sums func() func(path string) (sum string, ok bool)
	// AllowedTransports, if not nil, lists the only kinds that may be configured; a server of another kind is invalid.
	AllowedTransports []messages.TransportKind
	// Machine says what the machine on which the servers will run can enforce of an isolation; a server that asks for more is
	// invalid. With nil, the failure shows when the server starts.
	Machine func(messages.Isolation) isolation.Capabilities
	// policies holds those of the managed files; Merge fills it in.
	policies []Policy
}

// Set holds everything that all files together say. It is the result of [Merge]; package discover adds the approvals.
type Set struct {
	// Specs holds the servers by name. The supervisor knows one with Invalid or Hold set and does not start it.
	Specs map[string]messages.Spec
	// Found maps the name of a server to its candidates, highest precedence first: the entries of merely found files, followed
	// by the first entry below them that needs no approval. It has no key for servers without a merely found entry. Package
	// discover starts the first candidate that is approved or needs no approval.
	Found map[string][]Candidate
	// Waiting maps servers to the entry that waits for an approval, and Stale maps approved ones to clauses that say what else
	// has changed. Package discover fills in both.
	Waiting map[string]Candidate
	Stale   map[string][]string
	// Problems holds those of every file and server, sorted by file and line.
	Problems []Problem
	// Shadowed lists the entries that another one hides, sorted by server.
	Shadowed []Shadow
	// Policies holds those of managed files. The supervisor asks them before it starts a server; Merge itself refuses no server
	// by them.
	Policies []Policy
	// Permissions holds the rules about tools of all files.
	Permissions access.Rules
	// SamplingCommand is the program that answers servers which ask for the model, followed by its arguments; nil if none is
	// configured. Files of the project cannot set it.
	SamplingCommand []string
	// Audit is the record that the files ask for; nil if no file mentions one.
	Audit *Audit
	// Registry is the base URL of the MCP registry to install from; empty if no file names one.
	Registry string
	// Gateway says who may use the servers as an agent, and what each sees; nil if no file says it.
	Gateway *Gateway
	// Pin says what is done about tools that change.
	Pin Pin
	// Files lists the files that were merged, lowest precedence first.
	Files []Source
}

// Source describes one merged file for the status and the commands.
type Source struct {
	Path  string
	Scope messages.Scope
	// Servers counts its entries, shadowed and bad ones included.
	Servers int
	// Broken means that nothing could be read from the file.
	Broken bool
	// Exclusive means that the servers of all other files are ignored because of this one.
	Exclusive bool
	// Program is the program whose form the file has; empty for mcpvisor's own form.
	Program string
}

// Shadow is an entry that has no effect because another one of its name, or an exclusive file, has precedence.
type Shadow struct {
	Server string
	// Winner and Loser are the paths of the files.
	Winner, Loser string
	// Reason says why, as a clause.
	Reason string
}

// Unreadable reports whether there are files and all of them are broken. The configuration is then empty by mistake and not by
// choice, and the commands fail in the place of starting no server.
func (s Set) Unreadable() bool {
	return len(s.Files) > 0 && !slices.ContainsFunc(s.Files, func(f Source) bool { return !f.Broken })
}

// rank orders the scopes by precedence, lowest first. The managed scope is absent and so has rank 0: files of that scope come
// first, and their exclusiveness is decided separately.
var rank = map[messages.Scope]int{
	messages.ScopeUser: 1, messages.ScopeProject: 2, messages.ScopeLocal: 3, messages.ScopeDynamic: 4,
	messages.ScopeRuntime: 5,
}

// Merge decides which entry of each name counts, expands its variables and checks what can be checked only then. Within one
// scope the later file of the argument wins. Entries that a higher one shadows are resolved only where a merely found entry may
// not start without an approval, because the next one below it starts then.
func Merge(files []Parsed, ctx Context) Set {
	set := Set{Specs: map[string]messages.Spec{}, Found: map[string][]Candidate{}}
	files = slices.Clone(files)
	// The sort is stable, so that files of one scope keep the order of the argument.
	slices.SortStableFunc(files, func(a, b Parsed) int { return rank[a.Scope] - rank[b.Scope] })
	managed := ""
	// The first pass collects the settings of all files and finds out whether a managed file is exclusive.
	for _, f := range files {
		set.Files = append(set.Files, Source{f.Path, f.Scope, len(f.Servers), f.Broken, f.isExclusive(), f.Program})
		set.Problems = append(set.Problems, f.Problems...)
		if f.isExclusive() && managed == "" {
			managed = f.Path
		}
		if f.Policy != nil {
			// The policy belongs to the Parsed, which the caller may merge again with another home directory.
			own := *f.Policy
			own.home = ctx.HomeDir
			set.Policies = append(set.Policies, own)
		}
	}
	// resolveEntry needs the policies to choose the directory of a server.
	ctx.policies = set.Policies
	set.Permissions = permissionsOf(files)
	set.SamplingCommand = samplingOf(files, managed != "")
	set.Audit = auditOf(files)
	set.Gateway = gatewayOf(files, managed != "", ctx.HomeDir)
	set.Pin = pinOf(files)
	set.Registry = registryOf(files, managed != "")
	asks, off := asksForFiles(files), disabledBy(files, managed != "")
	type layer struct {
		entry Entry
		dir   string
	}
	// winners holds the entry of highest precedence by name, layers all entries of a name with lowest precedence first.
	winners, layers := map[string]Entry{}, map[string][]layer{}
	// The second pass sorts the entries by name. Later files hide earlier ones.
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
		// The walk goes down from the winner and ends at the first entry that needs no approval.
		for i, l := range slices.Backward(layers[name]) {
			own := ctx
			own.ProjectDir = cmp.Or(l.dir, ctx.ProjectDir)
			c := own.resolveEntry(l.entry, sum)
			c.Asks = c.Asks || asks
			// The top entry is the spec until the approvals, which are not known here, choose another candidate.
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
	set.Problems = append(set.Problems, unknownServerWarnings(set.Permissions, set.Gateway, slices.Sorted(maps.Keys(set.Specs)))...)
	sortProblems(set.Problems)
	slices.SortStableFunc(set.Shadowed, func(a, b Shadow) int { return strings.Compare(a.Server, b.Server) })
	return set
}

// outranksText returns the reason of a Shadow.
func outranksText(winner, loser messages.Scope) string {
	if winner == loser {
		return "the later " + string(winner) + " file wins"
	}
	return "the " + string(winner) + " scope wins over the " + string(loser) + " scope"
}

// joinProblems appends the problems of an entry's values (found) to those of the files (said). A problem of a file with
// Variable set is about text of another program that this variable replaces. If the variable is set, that problem is dropped;
// if it is not, the problem of the unset variable takes its text, so that the person reads one sentence with the cause.
func (c Context) joinProblems(said, found []Problem) []Problem {
	said = slices.DeleteFunc(said, func(w Problem) bool {
		if w.Variable == "" {
			return false
		}
		// The unset variable was found at the same place, and its problem takes the better text.
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
		// A variable that is set replaces what the other program would have asked for, and leaves nothing to report.
		_, set := c.Lookup(w.Variable)
		return set
	})
	return append(said, found...)
}
