package arch

import (
	"slices"
	"strings"
)

// Layer is one layer of the module. It begins at its height and ends below that of the next one; the numbers between are its
// steps. A package imports packages of lower layers, and of lower steps of its own.
type Layer struct {
	// Number names the layer in a failure: 0 to 6, with 4a, 4b and 4c for those that stand on the facade.
	Number string
	// The layer begins at Height; the heights up to the next layer are its steps.
	Height int
	// Why says what the packages of the layer have in common, and what they may not know.
	Why string
}

// The heights of the layers. A row adds a step to one of them where its packages stand on others of the same layer. The steps
// that no row uses are room for parts that are taken out of a package: the session leaves two below itself, the facade one.
const (
	vocabulary   = 0
	edge         = 10
	conversation = 20
	actorSystem  = 30
	facade       = 40
	faces        = 44
	gateway      = 46
	pages        = 48
	harness      = 50
	command      = 60
	onlyTests    = 80
)

// Layers are the layers of the module from the lowest to the highest.
var Layers = []Layer{
	{"0", vocabulary, "what is said, and how the bytes of strangers are read: it knows nothing of who speaks"},
	{"1", edge, "pure decisions, and the edge that moves bytes or keeps files: each knows the vocabulary and its own parts"},
	{"2", conversation, "what stands on the edge for any owner: conversations, credentials, files that are searched for; it knows no actor"},
	{"3", actorSystem, "actors, who are told what to do and do not know who tells them"},
	{"4", facade, "one manager of many servers, and the parts of it that are no actors of layer 3"},
	{"4a", faces, "what shows the facade to another process or observer; faces do not know each other, and the facade pays for none of them"},
	{"4b", gateway, "what serves agents by the protocol itself, from the facade and beside the faces"},
	{"4c", pages, "what shows faces and gateway to a person in a browser"},
	{"5", harness, "what breaks, watches and judges managers; a test of one's own may import it, so it never reaches the command"},
	{"6", command, "the command, which puts everything together"},
	{"tests", onlyTests, "tests that nothing imports"},
}

// LayerOf returns the layer in which a height lies.
func LayerOf(height int) Layer {
	i, found := slices.BinarySearchFunc(Layers, height, func(l Layer, h int) int { return l.Height - h })
	if !found {
		i--
	}
	return Layers[i]
}

// Row is one row of the table: some packages, how high they stand, and what they must never reach, with the reason that a
// failure prints.
type Row struct {
	// Packages are paths inside the module. "x/..." is x and everything below it. The longest match counts.
	Packages []string
	// Height is that of the layer and a step in it: an import goes to a strictly lower one.
	Height int
	// Pure packages have no I/O, no clock, no global randomness and no goroutines: see Purity.
	Pure bool
	// Exempt packages may import anything; only the height of their importers is checked. They are tests.
	Exempt bool
	// Why is printed when an import goes up.
	Why string
	// Never maps import paths (and everything below them) to the reason why not. Only what a package itself imports
	// counts.
	Never map[string]string
}

// Module is the path of this module.
const Module = "github.com/mcpvisor/mcpvisor"

// protoactor is the library of actors. Only the actors and what stands on them may import it.
const protoactor = "github.com/asynkron/protoactor-go"

// noActors is the Never of every row below the actors.
var noActors = map[string]string{
	protoactor: "what stands below the actors must be usable, and testable, without an actor system",
}

// Planned are packages that do not exist yet: their rows hold the place at which each will stand. A package that exists must
// leave this list, and a row that names neither a package nor one of these is dead.
var Planned = []string{
	"supervisor/cluster", "supervisor/telemetry",
	"supervisor/web",
	"test/chaos/chaostest",
}

// Table is the layer table, from the lowest layer to the highest. A package that no row names fails: give it a row, or a name in
// one, on purpose.
var Table = []Row{
	{
		Packages: []string{"messages"},
		Height:   vocabulary,
		Why:      "the vocabulary imports nothing of ours: a program that only sends messages depends on nothing else",
		Never:    noActors,
	},
	{
		Packages: []string{"messages/rawjson"},
		Height:   vocabulary + 1,
		Pure:     true,
		Why:      "bytes of strangers are read below every reader of them; the package knows how a name is shown to a person, and nothing else",
		Never:    noActors,
	},
	{
		Packages: []string{"test/servers"},
		Height:   vocabulary,
		Why:      "a fixture stands on nothing of ours: it must not share our bugs, and the command's demo becomes one",
		Never:    noActors,
	},
	{
		Packages: []string{
			"actors/lifecycle", "actors/catalog", "actors/internal/queue", "actors/opening", "actors/failure/internal/known",
			"supervisor/restart",
		},
		Height: edge,
		Pure:   true,
		Why:    "a pure package is decided by its arguments alone and knows the vocabulary only",
	},
	{
		Packages: []string{"actors/failure"},
		Height:   edge + 1,
		Pure:     true,
		Why:      "why a program ended is read from its text, by the tables of known failures",
	},
	{
		Packages: []string{"supervisor/access"},
		Height:   edge,
		Pure:     true,
		Why:      "who may call what is decided by its arguments alone; the configuration reads rules, and stands above it",
	},
	{
		Packages: []string{"supervisor/internal/refusal"},
		Height:   edge,
		Pure:     true,
		Why:      "with which error a manager refuses is the same for all of its parts",
	},
	{
		Packages: []string{"supervisor/internal/listindex"},
		Height:   edge,
		Why:      "what servers listed is remembered without asking them",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/config/steer"},
		Height:   edge,
		Pure:     true,
		Why:      "what a name changes is a table that everything which judges strangers looks into",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/config", "supervisor/install/plan"},
		Height:   edge + 1,
		Pure:     true,
		Why:      "what is written in a file or offered by a registry becomes a spec, decided by the bytes and the tables below",
	},
	{
		Packages: []string{"supervisor/config/foreign"},
		Height:   edge + 2,
		Pure:     true,
		Why:      "the files of other programs become entries of ours, and our own form knows nothing of theirs",
	},
	{
		Packages: []string{"supervisor/internal/reload/plan"},
		Height:   edge + 2,
		Pure:     true,
		Why:      "what follows from changed files is decided by what was read of them and the time, and by nothing that runs",
	},
	{
		Packages: []string{"supervisor/sparing"},
		Height:   edge,
		Why:      "how often something is said is decided by the subject and the time",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/files"},
		Height:   edge,
		Why:      "a file is replaced as bytes, and of what it holds only the number of its form is known: the rest its owner knows",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/internal/lists"},
		Height:   edge + 1,
		Why:      "files that are kept for those who could read them know neither servers nor credentials, only bytes",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/audit"},
		Height:   edge + 1,
		Why:      "a record is written without knowing what it tells of: what happened is said by the caller",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/output"},
		Height:   edge,
		Why:      "judging an answer needs the answer and the schema; it looks at a clock only to give up",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/isolation"},
		Height:   edge,
		Pure:     true,
		Why:      "what a server is kept from is decided by the wish and the machine's abilities, which are arguments",
	},
	{
		Packages: []string{"transports/runner"},
		Height:   edge,
		Pure:     true,
		Why:      "whether a program fetches what it runs is read from its words, by the transport that starts it and the actor that waits for it",
	},
	{
		Packages: []string{"transports/addresses"},
		Height:   edge,
		Pure:     true,
		Why:      "the reach of an address is decided by the address alone, and everything that dials may ask",
	},
	{
		Packages: []string{"transports/budget"},
		Height:   edge,
		Pure:     true,
		Why:      "what a server may hold is decided by counters, and everything that holds for servers asks",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/procinfo"},
		Height:   edge,
		Why:      "what the system tells of a process is read without knowing why it is asked",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/internal/launcher"},
		Height:   edge + 1,
		Why:      "it runs in a process that becomes a server and does nothing but what was planned",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/internal/redact"},
		Height:   edge,
		Why:      "what is hidden in a text is decided by the text and the secrets, which are arguments",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/stdio/children"},
		Height:   edge + 1,
		Why:      "which processes are children of this program is noted without knowing why they were started",
		Never:    noActors,
	},
	{
		Packages: []string{"transports"},
		Height:   edge + 2,
		Why:      "what a connection is, is said without knowing any kind of it",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/internal/admission", "transports/internal/pause"},
		Height:   edge,
		Why:      "who may still enter is counted, and a time waited for, without knowing what for",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/internal/errs"},
		Height:   edge + 3,
		Why:      "an error of the boundary is made from a cause, whatever failed",
		Never:    noActors,
	},
	{
		Packages: []string{
			"transports/internal/incoming", "transports/internal/lifetime", "transports/httpclient",
			"transports/stdio/internal/pipe", "transports/stdio/internal/process",
		},
		Height: edge + 4,
		Why:    "the parts that several kinds of connections are made of know what a connection is, and no kind of it",
		Never:  noActors,
	},
	{
		Packages: []string{"transports/internal/lines", "transports/internal/eventstream", "transports/internal/origin",
			"transports/internal/writequeue"},
		Height: edge + 5,
		Why:    "the frames of a stream, the order of writes and the requests to a server stand on the bounds for what a server sends",
		Never:  noActors,
	},
	{
		Packages: []string{"transports/stdio", "transports/web", "transports/websocket", "transports/stream", "transports/inprocess"},
		Height:   edge + 6,
		Why:      "a kind of transport moves bytes and does not know for whom, nor the other kinds",
		Never:    noActors,
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/edit"},
		Height:   edge,
		Pure:     true,
		Why:      "a text is edited as a text: what its keys mean, the command knows",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/markdown"},
		Height:   edge,
		Pure:     true,
		Why:      "a text is laid out from the text and the width alone; which terminal there is, the command knows",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/kinds"},
		Height:   conversation,
		Why:      "the transport of a spec is made for any owner, who decides before whether it may be",
		Never:    noActors,
	},
	{
		Packages: []string{
			"transports/auth", "transports/fault", "transports/transporttest", "transports/mcpgo", "transports/gosdk",
		},
		Height: conversation,
		Why:    "what is built on a transport serves any owner, not only our actors",
		Never:  noActors,
	},
	{
		Packages: []string{"transports/internal/conntest"},
		Height:   conversation + 1,
		Exempt:   true,
		Why:      "the tests of the transports stand on what they test",
	},
	{
		Packages: []string{"transports/auth/oauth"},
		Height:   conversation + 1,
		Why:      "signing in stands on the stores and locks of transports/auth, which know of no way to sign in",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/session/internal/jsonrpc"},
		Height:   edge,
		Pure:     true,
		Why:      "messages are taken apart and written without knowing which conversation they belong to",
	},
	{
		Packages: []string{"transports/session/internal/monotime"},
		Height:   edge,
		Why:      "the time is read from the clock and from nothing of ours",
	},
	{
		Packages: []string{"transports/session/internal/definitions", "transports/session/internal/era"},
		Height:   edge + 1,
		Pure:     true,
		Why:      "what a server's answers mean is decided from their bytes and the configuration alone",
	},
	{
		Packages: []string{
			"transports/session/internal/calltimeout", "transports/session/internal/memory", "transports/session/internal/questions",
		},
		Height: edge + 1,
		Why:    "deadlines, accounts and the answers of handlers are kept for a conversation without knowing it",
		Never:  noActors,
	},
	{
		Packages: []string{"transports/session/internal/serial"},
		Height:   edge + 2,
		Why:      "what runs one after the other is given as functions, and counted against an account",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/session/internal/headers", "transports/session/internal/outcome"},
		Height:   conversation,
		Why:      "what is sent to a transport, and what its failures mean, is decided from the message and the failure alone",
		Never:    noActors,
	},
	{
		Packages: []string{
			"transports/session/internal/lists", "transports/session/internal/subscriptions", "transports/session/internal/tasks",
		},
		Height: conversation + 1,
		Why:    "each part of a conversation names in an interface what it needs of the session, and does not know the session or another part",
		Never:  noActors,
	},
	{
		Packages: []string{"transports/session"},
		Height:   conversation + 2,
		Why:      "a conversation over one connection serves any owner; its parts stand below it",
		Never:    noActors,
	},
	{
		Packages: []string{"transports/serve"},
		Height:   conversation + 2,
		Why:      "the server's side of the protocol stands beside the client's, on the same transports, and knows of no manager",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/discover"},
		Height:   conversation,
		Why:      "finding files and reading them needs the configuration and nothing that runs",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/install"},
		Height:   conversation,
		Why:      "what a registry offers becomes a spec, and the command starts it: nothing here runs a server",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/pins"},
		Height:   conversation + 1,
		Why:      "what was approved is kept in a file, and known to everything that shows tools",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/internal/credentials"},
		Height:   conversation + 2,
		Why:      "who may be asked for what is decided from a spec and the store of sign-ins, for whatever connection",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/internal/opener", "supervisor/internal/toolcache"},
		Height:   conversation + 3,
		Why:      "a transport is made, and a list of tools kept, for the attempt of any owner",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/internal/reload"},
		Height:   conversation + 1,
		Why:      "following files needs finding and reading them, and nothing that runs: the facade applies what follows",
		Never:    noActors,
	},
	{
		Packages: []string{"actors"},
		Height:   actorSystem,
		Why:      "actors are told what to do: who supervises them is not theirs to know",
		Never: map[string]string{
			"google.golang.org/grpc": "actors speak to mailboxes; how a message travels is remote's business",
		},
	},
	{
		Packages: []string{"supervisor/internal/actorsystem", "supervisor/internal/auditor"},
		Height:   facade,
		Why:      "a part of the manager knows actors and published states, and no other part",
	},
	{
		Packages: []string{"supervisor/internal/hooks"},
		Height:   facade,
		Why:      "how a function of the program is run is the same for all that calls need",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/internal/asker", "supervisor/internal/core", "supervisor/internal/requests"},
		Height:   facade + 1,
		Why:      "persons are asked and servers supervised without knowing who calls: the facade passes in what these parts must know",
	},
	{
		Packages: []string{"supervisor/internal/permissions"},
		Height:   facade + 2,
		Why:      "a decision may need the person's answer, which the asker brings",
	},
	{
		Packages: []string{"supervisor"},
		Height:   facade + 3,
		Why:      "the facade stands below its faces, so that an embedding program pays for none of them; its parts stand below it",
	},
	{
		Packages: []string{"supervisor/internal/joined"},
		Height:   faces,
		Why:      "several managers are shown as one: a face or the gateway asks where a server is, and the facade knows of one manager only",
	},
	{
		Packages: []string{"supervisor/control/internal/fence"},
		Height:   faces,
		Why:      "whether a peer may control is decided from processes; what it then does is the socket's",
		Never:    noActors,
	},
	{
		Packages: []string{"supervisor/remote", "supervisor/control", "supervisor/cluster", "supervisor/telemetry"},
		Height:   faces + 1,
		Why:      "a face shows the facade to another process or to an observer; faces do not know each other, nor the command",
	},
	{
		Packages: []string{"supervisor/supervisortest"},
		Height:   faces + 1,
		Why:      "the kit for tests of an embedding program stands on the facade alone, like a face, so that such a test pulls in nothing else",
	},
	{
		Packages: []string{"supervisor/gateway"},
		Height:   gateway,
		Why:      "the gateway serves agents from the facade; how they reach it and in whose name is decided below it, what a page shows of it above",
	},
	{
		Packages: []string{"supervisor/web"},
		Height:   pages,
		Why:      "a page shows a person what facade, faces and gateway tell; nothing depends on there being one",
	},
	{
		Packages: []string{"test/chaos/score/adapter", "test/chaos/score/version"},
		Height:   harness,
		Why:      "what an adapter is says nothing of any client",
	},
	{
		Packages: []string{"test/chaos/scenario"},
		Height:   harness + 1,
		Why:      "a bad day is written down before anything runs it",
	},
	{
		Packages: []string{"test/chaos/history", "test/chaos/generate", "test/chaos/shrink"},
		Height:   harness + 2,
		Why:      "the record of a run, and scenarios made of others, know what a scenario is and nothing that runs one",
	},
	{
		Packages: []string{"test/chaos/peer", "test/chaos/invariant", "test/chaos/load", "test/chaos/resources", "test/chaos/drills"},
		Height:   harness + 3,
		Why:      "servers, judges and measurements are functions of the plan and the record; what performs them is above them",
	},
	{
		Packages: []string{"test/chaos/score/adapters/..."},
		Height:   harness + 3,
		Why:      "an adapter knows its client, and not how it is scored",
	},
	{
		Packages: []string{"test/chaos/sent", "test/chaos/performer", "test/chaos/agents"},
		Height:   harness + 4,
		Why:      "who judges what a client sends, who performs what a scripted server decides, and the agents of a gateway stand around it and below the tiers",
	},
	{
		Packages: []string{"test/chaos/sim", "test/chaos/live", "test/chaos/report", "test/chaos/proxy"},
		Height:   harness + 5,
		Why:      "the tiers, the reports and the proxy stand side by side on the vocabulary of the harness",
	},
	{
		Packages: []string{"test/chaos/..."},
		Height:   harness + 6,
		Why:      "what drives the tiers, and the tools made of them, is for the command and for nothing below it",
	},
	{
		Packages: []string{"test/chaos/client/..."},
		Height:   harness + 7,
		Why:      "the clients of other people's libraries stand beside the package that plays to any client, so that it and who imports it hold none",
	},
	{
		Packages: []string{"test/chaos/client"},
		Height:   harness + 6,
		Why:      "days are played to any client through three methods; which library it is of, it does not know",
		Never: map[string]string{
			"github.com/mark3labs/mcp-go":            "whoever tests a client of one library pays for no other",
			"github.com/modelcontextprotocol/go-sdk": "whoever tests a client of one library pays for no other",
		},
	},
	{
		Packages: []string{"test/chaos/campaign"},
		Height:   harness + 6,
		Why:      "many runs stand on one",
	},
	{
		Packages: []string{"test/chaos"},
		Height:   harness + 7,
		Why:      "the harness is importable, so it stands on the library and never on the command",
	},
	{
		Packages: []string{"test/chaos/chaostest"},
		Height:   harness + 8,
		Why:      "the kit for tests of anyone's client stands on the whole harness, and no part of the harness needs it",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/exit"},
		Height:   command,
		Why:      "an exit code follows from an error; what is printed about it is above",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/terminal"},
		Height:   command + 1,
		Why:      "a text reaches a stream without knowing the command that prints it",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/status", "cmd/mcpvisor/internal/schema"},
		Height:   command + 2,
		Why:      "a server and an argument are described and checked from values alone, the same for every command",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/ask"},
		Height:   command + 3,
		Why:      "a question needs the terminal and not the options: who asks says what it needs",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/cli"},
		Height:   command + 4,
		Why:      "the options are passed to every command, and know none",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/guardian"},
		Height:   command + 5,
		Why:      "a process is guarded and hidden whatever it then starts",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/daemon/client"},
		Height:   command + 5,
		Why:      "the daemon is found, started and greeted without knowing what it keeps: commands that use its servers stand above, as it does",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/project"},
		Height:   command + 6,
		Why:      "commands get their servers here, and what they do with them is above",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/call", "cmd/mcpvisor/internal/chaos"},
		Height:   command + 7,
		Why:      "one request, or one run of the harness, needs a project and no other command",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/approve"},
		Height:   command + 8,
		Why:      "who may call what is decided about tools, which package call finds",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/inspect", "cmd/mcpvisor/internal/registry", "cmd/mcpvisor/internal/clients"},
		Height:   command + 9,
		Why:      "an approval that is missing is shown in the screen of approve",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/signin", "cmd/mcpvisor/internal/up", "cmd/mcpvisor/internal/serve"},
		Height:   command + 10,
		Why:      "they say how a server fares in the words of inspect",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/daemon"},
		Height:   command + 9,
		Why:      "the servers of several projects live in one process, and who asks for them is above",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/connect"},
		Height:   command + 11,
		Why:      "a bridge finds, starts and loses daemons",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/manage"},
		Height:   command + 11,
		Why:      "a server that is added or removed may be installed from a registry, and signed in or out",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/demo"},
		Height:   command + 11,
		Why:      "the demo is a run of serve with servers of its own",
	},
	{
		Packages: []string{"cmd/mcpvisor/internal/harness"},
		Height:   command + 12,
		Why:      "main gets the test bench and the demo by this one import, which a build with -tags nochaos leaves out",
	},
	{
		Packages: []string{"cmd/..."},
		Height:   command + 13,
		Why:      "nothing imports the command; its groups of commands stand below it",
	},
	{
		Packages: []string{"test/...", "test/chaos/planted/...", "test/chaos/reach/..."},
		Height:   onlyTests,
		Exempt:   true,
		Why:      "nothing but a test imports a test",
	},
}

// ReachLimit limits what may be reached at all, through whatever other package.
type ReachLimit struct {
	// To is an import path, and everything below it.
	To string
	// Only are the packages that may; paths as in Row.
	Only []string
	// Why is printed when another package reaches it.
	Why string
}

// ReachLimits are the limits.
var ReachLimits = []ReachLimit{
	{"google.golang.org/grpc", grpcFaces, grpcWhy},
	{protoactor + "/remote", grpcFaces, grpcWhy},
	{protoactor + "/cluster", grpcFaces, grpcWhy},
	{
		"testing", []string{"supervisor/supervisortest", "transports/transporttest", "transports/internal/conntest", "cmd/...", "test/..."},
		"a program that embeds the library must not carry the testing package; the command does, for the bubble of chaos sim",
	},
}

// grpcFaces are the packages that may reach grpc: the faces to other machines, and what stands on them.
var grpcFaces = []string{"supervisor/remote", "supervisor/cluster", "cmd/...", "test/..."}

// grpcWhy is the reason of all limits on grpc.
const grpcWhy = "it adds grpc and 9 MB to every program that embeds the facade; only the faces to other machines may"

// matchPattern reports whether a package path is meant by a pattern of the table, and how exactly.
func matchPattern(pattern, path string) (length int, ok bool) {
	if prefix, all := strings.CutSuffix(pattern, "/..."); all {
		return len(prefix), path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return len(pattern) + 1, path == pattern
}

// isWithin reports whether an import path is root or stands below it.
func isWithin(root, path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// NeverReached are the packages that must not be reached by some others, through whatever package.
var NeverReached = []Separation{
	{
		Packages: []string{
			"transports/fault", "test/servers/...", "test/chaos/scenario", "test/chaos/history", "test/chaos/generate", "test/chaos/shrink",
			"test/chaos/peer", "test/chaos/performer", "test/chaos/sent", "test/chaos/invariant", "test/chaos/resources", "test/chaos/proxy",
			"test/chaos/score",
		},
		Never: "transports/session",
		Why: "what breaks and what judges reads the protocol by itself: a misreading that it shared with the session would be a truth " +
			"for both, and no run would show it",
	},
}

// Separation keeps packages apart.
type Separation struct {
	// Packages are paths as in Row; what they reach counts.
	Packages []string
	// Never is the package that they do not reach, and everything below it.
	Never string
	// Why is printed when one does.
	Why string
}
