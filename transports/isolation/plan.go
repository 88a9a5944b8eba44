package isolation

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Capabilities says what a machine can enforce. Package stdio/internal/process fills it; tests write it down.
type Capabilities struct {
	// System and Arch are names of runtime.GOOS and GOARCH. Kernel names the running kernel, for sentences: "Linux 6.8.0".
	System, Arch, Kernel string
	// Landlock is the version of its interface; 0 if there is none, and then NoLandlock says why.
	Landlock   int
	NoLandlock string
	// NoFilter is the reason why system calls cannot be filtered; empty if they can.
	NoFilter string
	// NoNamespace is the reason why no user namespace with a network of its own can be made; empty if one can.
	NoNamespace string
}

// Steps are the actions that isolate one server. The caller and the launcher perform them.
type Steps struct {
	// Temp asks for a private temporary folder, which the caller makes and adds to Files.
	Temp bool `json:"-"`
	// Loopback asks for a user and a network namespace at the creation of the process.
	Loopback bool `json:"loopback,omitempty"`
	// The process performs the others itself before it becomes the server, in this order.
	NoNewPrivileges bool          `json:"noNewPrivileges,omitempty"`
	Files           *Files        `json:"files,omitempty"`
	Filter          []Instruction `json:"filter,omitempty"`
	Limits          []Limit       `json:"limits,omitempty"`
	// Enforced describes the steps in words, for the status.
	Enforced messages.Enforced `json:"-"`
	// Waived are those of Enforced.Missing that a key asks for and that BestEffort gives up. The rest of Missing are parts for
	// which this kernel is too old, and which no key asks for by name.
	Waived []string `json:"-"`
}

// Files says which files may be changed and read. A nil list restricts nothing; an empty one allows no path. In every case the
// process cannot look into or trace processes that it did not start, and can mount nothing.
type Files struct {
	// Version is the version of Landlock's interface to use.
	Version int `json:"version"`
	// Bounds also refuses signals and abstract sockets of other processes, and the controls (ioctl) of devices, as far as Version
	// has them.
	Bounds bool `json:"bounds,omitempty"`
	// OwnSandbox allows writing to the files of processes in /proc, where Write is restricted: a program that makes a user
	// namespace writes its map there.
	OwnSandbox bool     `json:"ownSandbox,omitempty"`
	Write      []string `json:"write"`
	Read       []string `json:"read"`
}

// HidesSignals reports whether the process can signal no process that it did not start. A nil Files does not.
func (f *Files) HidesSignals() bool { return f != nil && f.Bounds && f.Version >= landlockScopes }

// Limit is a resource limit by the key that asks for it: memory, fileSize (both in bytes), files or cpuTime (in seconds).
type Limit struct {
	Key  string `json:"key"`
	Most uint64 `json:"most"`
}

// Launch reports whether the process must act itself before it becomes the server, so that a launcher is needed.
func (s *Steps) Launch() bool {
	return s.Loopback || s.NoNewPrivileges || s.Files != nil || s.Filter != nil || s.Limits != nil
}

// UnsupportedError means that this machine cannot enforce what Key asks for.
type UnsupportedError struct {
	// Key is that of the configuration, without "isolation.".
	Key, Reason string
}

// Error implements error.
func (u *UnsupportedError) Error() string {
	return "isolation." + u.Key + " cannot be enforced on this machine: " + u.Reason
}

// Fix returns the advice for a person.
func (u *UnsupportedError) Fix() string {
	return `leave it out, or write "bestEffort": true into "isolation" to start the server without it`
}

// The versions of Landlock's interface that matter here, each with the first kernel that has it.
const (
	landlockFiles    = 1 // Linux 5.13
	landlockRefer    = 2 // Linux 5.19: before, every rename and link between folders fails
	landlockTruncate = 3 // Linux 6.2: before, a file that may not be written may still be emptied
	landlockDevices  = 5 // Linux 6.10: the controls of devices
	landlockScopes   = 6 // Linux 6.12: signals and abstract sockets
)

// planner collects the steps of one plan. Each of its methods decides about one key.
type planner struct {
	want  *messages.Isolation
	can   Capabilities
	steps Steps
	// failed is the first key that cannot be enforced, nil for none.
	failed *UnsupportedError
}

// Plan returns the steps for what is wanted on a machine with these capabilities. The error is an *UnsupportedError about the
// first key, in the order of the documentation, that the machine cannot enforce; with BestEffort there is none. A nil want needs
// no steps.
func Plan(want *messages.Isolation, can Capabilities) (Steps, error) {
	if !want.Asks() {
		return Steps{}, nil
	}
	p := &planner{want: want, can: can}
	p.planTemp()
	p.planPrivileges()
	p.planFiles()
	p.planDomain()
	p.planNetwork()
	p.planFilter()
	p.planLimits()
	if p.failed != nil {
		return Steps{}, p.failed
	}
	return p.steps, nil
}

func (p *planner) isLinux() bool { return p.can.System == "linux" }

// inForce adds a sentence to the list of what is enforced.
func (p *planner) inForce(format string, args ...any) {
	p.steps.Enforced.InForce = append(p.steps.Enforced.InForce, fmt.Sprintf(format, args...))
}

// failOrWaive handles a key that cannot be enforced: it fails the plan, or with BestEffort notes the key as missing.
func (p *planner) failOrWaive(key, reason string) {
	if p.want.BestEffort {
		p.noteMissing(key, reason)
		p.steps.Waived = append(p.steps.Waived, key+" ("+reason+")")
	} else if p.failed == nil {
		p.failed = &UnsupportedError{key, reason}
	}
}

// noteMissing notes a part that this machine does not have. It does not fail the plan, because the key that the part comes with
// is enforced by itself.
func (p *planner) noteMissing(what, reason string) {
	p.steps.Enforced.Missing = append(p.steps.Enforced.Missing, what+" ("+reason+")")
}

// isBounded reports whether the server is denied more than privileges, and so must not control other processes either.
func (p *planner) isBounded() bool {
	return p.want.Write != nil || p.want.Read != nil || p.want.Network != ""
}

// failOnlyLinux handles a key that is only enforced on Linux.
func (p *planner) failOnlyLinux(key string) {
	p.failOrWaive(key, p.can.Kernel+" offers nothing for it that is used here")
}

// planTemp asks for the private folder, which every system can have.
func (p *planner) planTemp() {
	if p.want.PrivateTemp {
		p.steps.Temp = true
		p.inForce("private temp")
	}
}

// planPrivileges sets no_new_privs, on which Landlock and the filter depend as well.
func (p *planner) planPrivileges() {
	switch {
	case p.isLinux() && (p.want.NoNewPrivileges || p.isBounded()):
		p.steps.NoNewPrivileges = true
		p.inForce("no new privileges")
	case p.want.NoNewPrivileges:
		p.failOnlyLinux("noNewPrivileges")
	}
}

// planFiles restricts files by Landlock, if the kernel has it.
func (p *planner) planFiles() {
	if p.want.Write == nil && p.want.Read == nil {
		return
	}
	if reason := p.noLandlock(); reason != "" {
		for _, k := range []struct {
			key   string
			asked bool
		}{{"write", p.want.Write != nil}, {"read", p.want.Read != nil}} {
			if k.asked {
				p.failOrWaive(k.key, reason)
			}
		}
		return
	}
	f := &Files{Version: p.can.Landlock, Bounds: true, Write: p.want.Write, Read: p.want.Read}
	p.steps.Files = f
	if f.Write != nil {
		p.inForce("read-only%s", exceptPaths(f.Write, p.want.PrivateTemp))
		// The key promises that nothing else is changed, and emptying is a change, so that an old Landlock does not fulfil it.
		if f.Version < landlockTruncate {
			p.failOrWaive("write", fmt.Sprintf("Landlock of %s has version %d, and keeps files from being emptied from 3 on",
				p.can.Kernel, f.Version))
		}
	}
	if f.Read != nil {
		text := "reads only the system's files and its own program"
		if len(f.Read) > 0 {
			text += ", " + pathList(f.Read)
		}
		p.inForce("%s", text)
	}
}

// planDomain puts the server into a Landlock domain of its own wherever it gets no new privileges: members of a domain cannot
// look into processes outside, whatever else the domain forbids.
func (p *planner) planDomain() {
	if !p.steps.NoNewPrivileges {
		return
	}
	if p.steps.Files == nil {
		if reason := p.noDomain(); reason != "" {
			p.noteMissing(partProcesses, reason)
			return
		}
		p.steps.Files = &Files{Version: p.can.Landlock, Bounds: p.isBounded()}
	}
	p.inForce("no look into other processes")
	if !p.isBounded() {
		return
	}
	if p.can.Landlock < landlockDevices {
		p.noteMissing(partDevices, p.availableFrom(landlockDevices))
	}
	if p.can.Landlock < landlockScopes {
		p.noteMissing(partSignals, p.availableFrom(landlockScopes))
		return
	}
	p.inForce("no signals to other processes")
}

// noDomain returns the reason why a domain that restricts no file cannot be made, empty if it can.
func (p *planner) noDomain() string {
	if reason := p.noLandlock(); reason != "" || p.can.Landlock >= landlockRefer {
		return reason
	}
	return fmt.Sprintf("Landlock of %s has version 1, which would make renames between folders fail", p.can.Kernel)
}

// availableFrom is the reason for a part that a later version of Landlock has.
func (p *planner) availableFrom(version int) string {
	return fmt.Sprintf("Landlock of %s has version %d, and offers it from %d on", p.can.Kernel, p.can.Landlock, version)
}

// planFilter refuses system calls to a bounded server. planNetwork has already decided whether the network depends on the filter.
func (p *planner) planFilter() {
	own := p.want.OwnSandbox
	switch {
	case !p.isBounded() || !p.isLinux():
		return
	case p.noFilter() != "":
		if p.want.Network != messages.NetworkNone { // else planNetwork has failed
			p.noteMissing(partCalls, p.noFilter())
		}
		return
	case own && p.steps.Files == nil: // without Landlock only the refusal of tracing keeps it from other processes
		p.failOrWaive("ownSandbox", p.noDomain())
		own = false
	}
	p.steps.Filter = buildFilter(architectures[p.can.Arch], p.want.Network == messages.NetworkNone, own)
	if own {
		p.steps.Files.OwnSandbox = true
		p.inForce("fewer system calls, but a sandbox of its own")
		return
	}
	p.inForce("fewer system calls")
}

// noFilter returns the reason why system calls cannot be filtered, empty if they can.
func (p *planner) noFilter() string {
	if p.can.NoFilter == "" && !hasFilter(p.can.Arch) {
		return "system calls of " + p.can.Arch + " are not filtered by this version"
	}
	return p.can.NoFilter
}

// noLandlock returns the reason why files cannot be restricted, empty if they can.
func (p *planner) noLandlock() string {
	switch {
	case !p.isLinux():
		return p.can.Kernel + " offers nothing for it that is used here"
	case p.can.Landlock < landlockFiles:
		return p.can.NoLandlock
	}
	return ""
}

// planNetwork takes the network away: by a namespace if the server keeps its own loopback, by the filter if it keeps nothing.
func (p *planner) planNetwork() {
	key := "network"
	switch {
	case p.want.Network == "":
	case !p.isLinux():
		p.failOnlyLinux(key)
	case p.want.Network == messages.NetworkLoopback && p.can.NoNamespace != "":
		p.failOrWaive(key, p.can.NoNamespace)
	case p.want.Network == messages.NetworkLoopback:
		p.steps.Loopback = true
		p.inForce("no network but its own loopback")
	case p.noFilter() != "":
		p.failOrWaive(key, p.noFilter())
	default:
		p.inForce("no network and no sockets")
	}
}

// planLimits sets resource limits. The kernel counts memory per process on Linux only; processor time is rounded up to seconds.
func (p *planner) planLimits() {
	limit := func(key string, most int64, text string, supported bool) {
		switch {
		case most == 0:
		case !supported:
			p.failOnlyLinux(key)
		default:
			p.steps.Limits = append(p.steps.Limits, Limit{key, uint64(most)})
			p.inForce("%s", text)
		}
	}
	w, unix := p.want, p.isLinux() || p.can.System == "darwin"
	limit("memory", int64(w.Memory), fmt.Sprintf("at most %s of memory per process", w.Memory), p.isLinux())
	limit("fileSize", int64(w.FileSize), fmt.Sprintf("files of at most %s", w.FileSize), unix)
	limit("files", int64(w.Files), fmt.Sprintf("at most %d open files per process", w.Files), unix)
	cpu := time.Duration(w.CPUTime)
	limit("cpuTime", int64((cpu+time.Second-1)/time.Second), fmt.Sprintf("at most %s of processor time per process", cpu), unix)
}

// exceptPaths returns the end of the sentence about a read-only server: the paths that it may write all the same.
func exceptPaths(write []string, temp bool) string {
	var parts []string
	if len(write) > 0 {
		parts = append(parts, pathList(write))
	}
	if temp {
		parts = append(parts, "its temp")
	}
	if len(parts) == 0 {
		return ""
	}
	return " except " + strings.Join(parts, " and ")
}

// pathList lists paths for a person: three of them, and the number of the others.
func pathList(paths []string) string {
	const most = 3
	shown := paths[:min(len(paths), most)]
	words := make([]string, len(shown))
	for i, s := range shown {
		words[i] = messages.Line(s, 80)
	}
	text := strings.Join(words, ", ")
	if n := len(paths) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
