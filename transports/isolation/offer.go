package isolation

import (
	"errors"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Offer says whether a machine can enforce one key or part.
type Offer struct {
	// Key is that of the configuration, with its value where one of several is meant: `network: "none"`. For a part it is the
	// name in Enforced.Missing.
	Key string `json:"key"`
	// Takes names what a server can no longer do under the key, besides what the key itself says: programs that need it fail.
	Takes string `json:"takes,omitempty"`
	// Given is true if the machine can enforce it. Reason says why it cannot.
	Given  bool   `json:"given"`
	Reason string `json:"reason,omitempty"`
}

// takenByBounds is common to all keys that bound a server.
const takenByBounds = "sandboxes of their own, debuggers, terminals, keyrings of the kernel"

// offeredKeys are the keys that Offers asks about, in the order of the documentation, each as the least wish for it.
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

// Offers returns what a machine can enforce: the answer of Plan to each key alone, so that the two never disagree.
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

// The parts that come with a key and have no key of their own, as Enforced.Missing names them.
const (
	partProcesses = "no look into other processes"
	partSignals   = "no signals and abstract sockets of other processes"
	partDevices   = "no controls of devices"
	partCalls     = "fewer system calls"
)

// Parts returns the parts that come with keys, and whether this machine has them: the first one comes with noNewPrivileges, all
// of them with write, read and network. A server is started without a missing part, and its status names it.
func Parts(can Capabilities) []Offer {
	p := planner{want: &messages.Isolation{}, can: can}
	steps, err := Plan(&messages.Isolation{Read: []string{}, BestEffort: true}, can)
	// The reasons are read out of the plan's own list of what is missing.
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

// WantedText describes the wishes as they would be enforced on a machine that can enforce all.
func WantedText(i *messages.Isolation) string {
	able := Capabilities{System: "linux", Arch: "amd64", Landlock: landlockScopes}
	steps, err := Plan(i, able)
	if err != nil { // it cannot happen: the machine offers everything
		return err.Error()
	}
	return steps.Enforced.String()
}
