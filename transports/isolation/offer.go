package isolation

import (
	"errors"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Offer is one thing that a machine can enforce, or cannot.
type Offer struct {
	// Key is that of the configuration, with its value where one of several is meant: `network: "none"`. Of a part it is what
	// Enforced.Missing calls it.
	Key string `json:"key"`
	// Takes says what a server that is isolated so can no longer do, besides what the key says: programs that need it fail.
	Takes string `json:"takes,omitempty"`
	// Given says that it can be enforced. Reason is why not.
	Given  bool   `json:"given"`
	Reason string `json:"reason,omitempty"`
}

const takenByBounds = "sandboxes of their own, debuggers, terminals, keyrings of the kernel"

// offeredKeys are the wishes that are asked about, in the order of the documentation.
var offeredKeys = []struct {
	key, takes string
	want       messages.Isolation
}{
	{"privateTemp", "", messages.Isolation{PrivateTemp: true}},
	{"noNewPrivileges", "sudo and ping, containers without root, mounts; other processes cannot be looked into",
		messages.Isolation{NoNewPrivileges: true}},
	{"write", "the same, " + takenByBounds + ", signals to its parent; shared memory, unless listed",
		messages.Isolation{Write: []string{}}},
	{"read", "the same", messages.Isolation{Read: []string{}}},
	{"network: false", "the same but shared memory; D-Bus, Docker, agents for keys", messages.Isolation{Network: messages.NetworkNone}},
	{`network: "loopback"`, "the same but D-Bus, Docker and agents that have a path", messages.Isolation{Network: messages.NetworkLoopback}},
	{"memory", "", messages.Isolation{Memory: LeastMemory}},
	{"fileSize", "", messages.Isolation{FileSize: 1}},
	{"files", "", messages.Isolation{Files: LeastFiles}},
	{"cpuTime", "", messages.Isolation{CPUTime: messages.Duration(leastCPU)}},
	{"ownSandbox", "nothing: gives back sandboxes of its own and debuggers", messages.Isolation{Network: messages.NetworkNone, OwnSandbox: true}},
}

// Offers returns what a machine can enforce: the answer of Plan to each wish by itself.
func Offers(can Capabilities) []Offer {
	out := make([]Offer, len(offeredKeys))
	for i, o := range offeredKeys {
		_, err := Plan(&o.want, can)
		out[i] = Offer{Key: o.key, Takes: o.takes, Given: err == nil}
		var un *UnsupportedError
		if errors.As(err, &un) {
			out[i].Reason = un.Reason
		}
	}
	return out
}

// What comes with a key without having one, as Enforced.Missing names it.
const (
	partProcesses = "no look into other processes"
	partSignals   = "no signals and abstract sockets of other processes"
	partDevices   = "no controls of devices"
	partCalls     = "fewer system calls"
)

// Parts returns what comes with the keys, and whether this machine has it: the first with noNewPrivileges, all of them with write,
// read and network. A server is started without what is not given, and its status says so.
func Parts(can Capabilities) []Offer {
	p := planner{want: &messages.Isolation{}, can: can}
	steps, err := Plan(&messages.Isolation{Read: []string{}, BestEffort: true}, can)
	reason := func(part string) string {
		for _, missing := range steps.Enforced.Missing {
			if rest, ok := strings.CutPrefix(missing, part+" ("); ok {
				return strings.TrimSuffix(rest, ")")
			}
		}
		switch {
		case part == partProcesses:
			return p.noDomain()
		case part == partCalls && steps.Filter == nil, part != partCalls && steps.Files == nil:
			return p.noLandlock()
		}
		return ""
	}
	out := []Offer{}
	for _, part := range []string{partProcesses, partSignals, partDevices, partCalls} {
		o := Offer{Key: part, Reason: reason(part)}
		if err != nil {
			o.Reason = err.Error()
		}
		o.Given = o.Reason == ""
		out = append(out, o)
	}
	return out
}

// WantedText returns the wishes in the words for what is then in force: on a machine that offers everything.
func WantedText(i *messages.Isolation) string {
	able := Capabilities{System: "linux", Arch: "amd64", Landlock: landlockScopes}
	steps, err := Plan(i, able)
	if err != nil { // it offers everything
		return err.Error()
	}
	return steps.Enforced.String()
}
