package arch

import "strings"

// Layer is one row of the table: some packages, how high they stand, and what they must never reach, with the reason
// that a failure prints.
type Layer struct {
	// Packages are paths inside the module. "x/..." is x and everything below it. The longest match counts.
	Packages []string
	// Height: an import goes to a strictly lower one. The heights are those of the design times ten, which leaves room
	// for the faces of the supervisor (45) between it and what stands on them.
	Height int
	// Pure packages have no I/O, no clock, no global randomness and no goroutines: see Purity.
	Pure bool
	// Exempt packages may import anything; only the height of who imports them is checked. They are tests.
	Exempt bool
	// Why is said when an import goes up.
	Why string
	// Never maps import paths (and everything below them) to the reason why not. Only what a package itself imports
	// counts.
	Never map[string]string
}

// Module is ours.
const Module = "github.com/mcpvisor/mcpvisor"

const protoactor = "github.com/asynkron/protoactor-go"

var noActors = map[string]string{
	protoactor: "what stands below the actors must be usable, and testable, without an actor system",
}

// Table is the layer table. A package that no row names fails: give it a row, or a name in one, on purpose.
var Table = []Layer{
	{
		Packages: []string{"messages"},
		Height:   0,
		Why:      "the vocabulary imports nothing of ours: a program that only sends messages depends on nothing else",
		Never:    noActors,
	},
	{
		Packages: []string{"messages/rawjson"},
		Height:   1,
		Pure:     true,
		Why:      "bytes of strangers are read below whoever gets them; it knows how a name is shown to a person, and nothing else",
		Never:    noActors,
	},
	{
		Packages: []string{"test/servers"},
		Height:   0,
		Why:      "a fixture stands on nothing of ours: it must not share our bugs, and the command's demo becomes one",
		Never:    noActors,
	},
	{
		Packages: []string{
			"actors/lifecycle", "actors/catalog", "actors/internal/queue", "actors/opening", "actors/failure",
			"supervisor/restart", "supervisor/config", "supervisor/install/plan",
		},
		Height: 10,
		Pure:   true,
		Why:    "a pure package is decided by its arguments alone and knows the vocabulary only",
	},
	{
		Packages: []string{"supervisor/config/foreign"},
		Height:   12,
		Pure:     true,
		Why:      "the files of other programs become entries of ours, and our own form knows nothing of theirs",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/edit"},
		Height:   10,
		Pure:     true,
		Why:      "a text is edited as a text: what its keys mean is for whoever edits it",
	},
	{
		Packages: []string{"supervisor/internal/reload/plan"},
		Height:   15,
		Pure:     true,
		Why:      "what follows from changed files is decided by what was read of them and the time, and by nothing that runs",
	},
	{
		Packages: []string{"transports/isolation"},
		Height:   5,
		Pure:     true,
		Why:      "what a server is kept from is decided by the wish and the machine's abilities, which are arguments",
	},
	{
		Packages: []string{"transports/internal/launcher"},
		Height:   7,
		Why:      "it runs in a process that becomes a server and does nothing but what was planned",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/runner"},
		Height:   5,
		Pure:     true,
		Why:      "whether a program fetches what it runs is read from its words, by whoever starts one or waits for it",
	},
	{
		Packages: []string{"transports/addresses"},
		Height:   2,
		Pure:     true,
		Why:      "the reach of an address is decided by the address alone, and everything that dials may ask",
	},
	{
		Packages: []string{"supervisor/config/steer"},
		Height:   5,
		Pure:     true,
		Why:      "what a name changes is a table that everything which judges strangers looks into",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/budget"},
		Height:   5,
		Pure:     true,
		Why:      "what a server may hold is decided by counters, and everything that holds for servers asks",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/procinfo"},
		Height:   5,
		Why:      "what the system tells of a process is read without knowing why it is asked",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/sparing"},
		Height:   5,
		Why:      "how often something is said is decided by the subject and the time",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/control/internal/fence"},
		Height:   43,
		Why:      "whether a peer may control is decided from processes; what it then does is the socket's",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/access"},
		Height:   5,
		Pure:     true,
		Why:      "who may call what is decided by its arguments alone; the configuration reads rules, and stands above it",
	},
	{
		Packages: []string{"supervisor/pins"},
		Height:   35,
		Why:      "what was approved is kept in a file, and known to whoever shows tools",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/internal/lists"},
		Height:   10,
		Why:      "files that are kept for those who could read them know neither servers nor credentials, only bytes",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/audit"},
		Height:   10,
		Why:      "a record is written whatever it tells of: what happened is said by whoever did it",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/output"},
		Height:   10,
		Why:      "judging an answer needs the answer and the schema; it looks at a clock only to give up",
		Never:    noActors,
	},
	{
		Packages: []string{"transports"},
		Height:   10,
		Why:      "a transport moves bytes and knows nothing of who wants them moved",
		Never:    noActors,
	},
	{
		Packages: []string{
			"transports/session", "transports/auth", "transports/fault", "transports/transporttest",
			"transports/mcpgo", "transports/gosdk",
		},
		Height: 20,
		Why:    "what is built on a transport serves any owner, not only our actors",
		Never:  noActors,
	},
	{
		Packages: []string{"transports/auth/oauth"},
		Height:   25,
		Why:      "signing in stands on the stores and locks of transports/auth, which know of no way to sign in",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/discover"},
		Height:   30,
		Why:      "finding files and reading them needs the configuration and nothing that runs",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/install"},
		Height:   30,
		Why:      "what a registry offers becomes a spec, and whoever asked starts it: nothing here runs a server",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/internal/reload"},
		Height:   35,
		Why:      "following files needs finding and reading them, and nothing that runs: who applies what follows is above it",
		Never:    noActors,
	},
	{
		Packages: []string{"actors"},
		Height:   30,
		Why:      "actors are told what to do: who supervises them is not theirs to know",
		Never: map[string]string{
			"google.golang.org/grpc": "actors speak to mailboxes; how a message travels is remote's business",
		},
	},
	{
		Packages: []string{"supervisor"},
		Height:   40,
		Why:      "the facade stands below its faces, so that an embedding program pays for none of them",
	},
	{
		Packages: []string{"supervisor/remote", "supervisor/control", "supervisor/gateway", "supervisor/status"},
		Height:   45,
		Why:      "a face shows the facade to somebody; faces do not know each other, nor the command",
	},
	{
		Packages: []string{"test/chaos/faults"},
		Height:   46,
		Why:      "what can break is said without saying when or to whom",
	},
	{
		Packages: []string{"test/chaos/scenario"},
		Height:   47,
		Why:      "a bad day is written down before anything runs it",
	},
	{
		Packages: []string{"test/chaos/history", "test/chaos/generate", "test/chaos/shrink"},
		Height:   48,
		Why:      "the record of a run, and scenarios made of others, know what a scenario is and nothing that runs one",
	},
	{
		Packages: []string{"test/chaos/peer", "test/chaos/invariant", "test/chaos/load", "test/chaos/resources"},
		Height:   50,
		Why:      "servers, judges and measurements are functions of the plan and the record; who performs is above them",
	},
	{
		Packages: []string{"test/chaos/sent"},
		Height:   51,
		Why:      "who judges what a client sends stands around the scripted server, and below whoever performs it",
	},
	{
		Packages: []string{"test/chaos/sim", "test/chaos/live", "test/chaos/report", "test/chaos/proxy"},
		Height:   52,
		Why:      "the tiers, the reports and the proxy stand side by side on the vocabulary of the harness",
	},
	{
		Packages: []string{"test/chaos/score/adapter", "test/chaos/score/version"},
		Height:   50,
		Why:      "what an adapter is says nothing of any client",
	},
	{
		Packages: []string{"test/chaos/score/adapters/..."},
		Height:   52,
		Why:      "an adapter knows its client, and not how it is scored",
	},
	{
		Packages: []string{"test/chaos/..."},
		Height:   54,
		Why:      "what drives the tiers, and the tools made of them, is for the command and for nobody below",
	},
	{
		Packages: []string{"test/chaos/campaign"},
		Height:   54,
		Why:      "many runs stand on one",
	},
	{
		Packages: []string{"test/chaos"},
		Height:   56,
		Why:      "the harness is importable, so it stands on the library and never on the command",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/markdown"},
		Height:   5,
		Pure:     true,
		Why:      "a text is laid out from the text and the width alone; which terminal there is, the command knows",
		Never:    noActors,
	},
	{
		Packages: []string{"cmd/..."},
		Height:   60,
		Why:      "nothing imports the command",
	},
	{
		Packages: []string{"test/...", "test/chaos/planted/...", "test/chaos/reach/..."},
		Height:   70,
		Exempt:   true,
		Why:      "nothing but a test imports a test",
	},
}

// ReachLimit limits what may be reached at all, through whatever other package.
type ReachLimit struct {
	// To is an import path, and everything below it.
	To string
	// Only are the packages that may; paths as in Layer.
	Only []string
	Why  string
}

// ReachLimits are the limits.
var ReachLimits = []ReachLimit{
	{"google.golang.org/grpc", []string{"supervisor/remote", "cmd/...", "test/..."}, grpcWhy},
	{protoactor + "/remote", []string{"supervisor/remote", "cmd/...", "test/..."}, grpcWhy},
	{protoactor + "/cluster", []string{"supervisor/remote", "cmd/...", "test/..."}, grpcWhy},
	{
		"testing", []string{"transports/transporttest", "cmd/...", "test/..."},
		"a program that embeds the library must not carry the testing package; the command does, for the bubble of chaos sim",
	},
}

const grpcWhy = "it adds grpc and 9 MB to every program that embeds the facade; only supervisor/remote may"

// matchPattern reports whether a package path is meant by a pattern of the table, and how exactly.
func matchPattern(pattern, path string) (length int, ok bool) {
	if prefix, all := strings.CutSuffix(pattern, "/..."); all {
		return len(prefix), path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return len(pattern) + 1, path == pattern
}

// isWithin reports whether an import path is root or stands below it.
func isWithin(root, path string) bool { return path == root || strings.HasPrefix(path, root+"/") }
