package scenario

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ConnectAll and DisconnectAll are the commands to all servers. In the record each is one event for each server: what the facade
// documents that it does to that one.
const ConnectAll, DisconnectAll = "connectAll", "disconnectAll"

// ActionOf returns the command to one server that a command to all of them amounts to, by the server's phase when it is given;
// empty if nothing is done about that server.
func ActionOf(do string, phase messages.Phase, step messages.Step) string {
	switch {
	case do == DisconnectAll:
		return "disconnect"
	case phase == messages.Connected:
		return ""
	case phase == messages.Disabled, phase == messages.Pending && step != messages.Idle:
		return "enable"
	}
	return "reconnect"
}

// ErrorOf returns what the error of a command to all servers says of one of them; nil if it says nothing of it.
func ErrorOf(err error, server string) error {
	if all, joined := err.(interface{ Unwrap() []error }); joined {
		for _, one := range all.Unwrap() {
			if own := (*messages.Error)(nil); errors.As(one, &own) && own.Server == server {
				return one
			}
		}
		return nil
	}
	return err
}

// Occasions maps the words of Scenario.Sometimes to what must have been seen.
var Occasions = map[string]string{
	"park":                      "a server failed so often in a row that it was parked",
	"probe-success":             "a parked server was connected by one of its probes",
	"disabled-while-connecting": "a server was disabled, disconnected or removed while an attempt to connect ran",
	"retry-after":               "a server said when to come back",
	"withdrawn":                 "the tools of a lost connection left the catalog because it did not come back in time",
	"replayed":                  "a call that may have run was sent again, as its tool and the trust in its server allow",
	"stable-reset":              "a connection lasted for the stable period and the count of failures went back to zero",
}

// Invariants holds the words of Scenario.Invariants, in their order.
var Invariants = []string{
	"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15",
	"I16", "I17", "I18", "I19", "I20", "I21", "I22", "I23", "I24", "I25", "I26", "I27", "I28", "I29",
}

// Kinds and Eras hold the words of Group.Kind and Group.Era, Tiers those of Scenario.Tiers. claudeai-proxy is left out
// of Kinds, because such a connector is HTTP at another address.
var (
	Kinds = slices.DeleteFunc(slices.Clone(messages.TransportKinds), func(k messages.TransportKind) bool { return k == messages.ClaudeAIProxy })
	Eras  = []messages.Era{messages.EraLegacy, messages.EraModern}
	Tiers = []Tier{Sim, Real}

	connectWords = []messages.Connect{messages.Eager, messages.Lazy}
	webWords     = []string{WebPlain, WebNumbered}
	taskWords    = []string{TasksOptional, TasksRequired}
	pinWords     = []string{messages.PinOff, messages.PinWarn, messages.PinHold}
)

// The words of Agents.Over.
const (
	OverLines = "lines"
	OverHTTP  = "http"
)

// Reads holds the words of Load.Read.
var Reads = []string{"resources", "templates", "resource", "prompts", "prompt", "complete", "subscribe", "tasks", "ping"}

// The words of Group.Tasks.
const (
	TasksOptional = "optional"
	TasksRequired = "required"
)

// The words of Group.Web.
const (
	WebPlain    = "plain"
	WebNumbered = "numbered"
)

// The tools that every server has. Further ones are tool-4, tool-5, … up to the number in Group.Tools.
const (
	ReadTool  = "read"  // marked read-only
	PutTool   = "put"   // marked idempotent
	WriteTool = "write" // neither
)

// toStrings converts words of a type of their own, for the proposals in problems.
func toStrings[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// sortedKeys returns the words of a table, sorted, so that problems list them in the same order each time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ForbidsTasks reports whether a tool of a server whose calls may run as tasks says nothing of them, so that no client of the legacy era may call it as
// one: the one that puts. tasks is Server.Tasks.
func ForbidsTasks(tasks, tool string) bool { return tasks == TasksOptional && tool == PutTool }

// RefusesCaller reports whether a server with personal credentials (Server.Personal) refuses those of a caller: of the second one of each load.
func RefusesCaller(caller string) bool { return strings.HasSuffix(caller, "-2") }

// callerMark stands in a token before the name of the caller whose it is.
const callerMark = "-of-"

// TokenOfCaller is the token of a caller at a server with personal credentials (Server.Personal), made of that of the connection.
func TokenOfCaller(token, caller string) string { return token + callerMark + caller }

// SplitToken returns the token of the connection of which a token is made, and the caller whose token it is, empty for that of the connection.
func SplitToken(token string) (ofConnection, caller string) {
	ofConnection, caller, _ = strings.Cut(token, callerMark)
	return ofConnection, caller
}
