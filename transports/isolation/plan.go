package isolation

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Capabilities says what a machine can enforce.
type Capabilities struct {
	// System and Arch are names of runtime.GOOS and GOARCH, Kernel names the running one, for sentences: "Linux 6.8.0".
	System, Arch, Kernel string
	// Landlock is the version of its interface; 0 if there is none, and NoLandlock says why.
	Landlock   int
	NoLandlock string
	// NoFilter says why system calls cannot be filtered; empty if they can.
	NoFilter string
	// NoNamespace says why no user namespace with a network of its own can be made; empty if one can.
	NoNamespace string
}

// Steps says what the launcher has to do for one server.
type Steps struct {
	// Temp asks for a private temporary folder, which the caller makes and adds to Files.
	Temp bool `json:"-"`
	// Loopback asks for a user and a network namespace when the process is created.
	Loopback bool `json:"loopback,omitempty"`
	// The others are done by the process itself before it becomes the server, in this order.
	NoNewPrivileges bool          `json:"noNewPrivileges,omitempty"`
	Files           *Files        `json:"files,omitempty"`
	Filter          []Instruction `json:"filter,omitempty"`
	Limits          []Limit       `json:"limits,omitempty"`
	// Enforced says the same in words.
	Enforced messages.Enforced `json:"-"`
	// Waived is the part of Enforced.Missing that was asked for by a key, and that BestEffort lets go. The rest of Missing is
	// what this kernel is too old for, and nothing was asked for by name.
	Waived []string `json:"-"`
}

// Files says which files may be changed and read. A nil list restricts nothing. Whatever the lists say, the process cannot
// look into or trace others that it did not start, and nothing can be mounted.
type Files struct {
	// Version is that of Landlock.
	Version int `json:"version"`
	// Bounds also keeps signals and abstract sockets of others away, and the controls (ioctl) of devices, as far as Version
	// has them.
	Bounds bool `json:"bounds,omitempty"`
	// OwnSandbox lets what the kernel shows as files of a process be written, where Write is restricted: who makes a user
	// namespace says there whose it is.
	OwnSandbox bool     `json:"ownSandbox,omitempty"`
	Write      []string `json:"write"`
	Read       []string `json:"read"`
}

// HidesSignals reports whether the process can signal no process that it did not start. A nil Files does not.
func (f *Files) HidesSignals() bool { return f != nil && f.Bounds && f.Version >= landlockScopes }

// Limit is a resource limit by the key that asks for it: memory, fileSize, files or cpuTime (in seconds).
type Limit struct {
	Key  string `json:"key"`
	Most uint64 `json:"most"`
}

// Launch reports whether the process must do something itself before it becomes the server.
func (s *Steps) Launch() bool {
	return s.Loopback || s.NoNewPrivileges || s.Files != nil || s.Filter != nil || s.Limits != nil
}

// UnsupportedError says that this machine cannot enforce what Key asks for.
type UnsupportedError struct {
	// Key is that of the configuration, without "isolation.".
	Key, Reason string
}

// Error implements error.
func (u *UnsupportedError) Error() string {
	return "isolation." + u.Key + " cannot be enforced on this machine: " + u.Reason
}

// Fix says what a person can do about it.
func (u *UnsupportedError) Fix() string {
	return `leave it out, or write "bestEffort": true into "isolation" to start the server without it`
}

// The versions of Landlock's interface that matter here.
const (
	landlockFiles    = 1 // Linux 5.13
	landlockRefer    = 2 // Linux 5.19: before, each rename and link between folders fails
	landlockTruncate = 3 // Linux 6.2: before, a file that may not be written may be emptied
	landlockDevices  = 5 // Linux 6.10: the controls of devices
	landlockScopes   = 6 // Linux 6.12: signals and abstract sockets
)

// planner collects the steps of one plan.
type planner struct {
	want   *messages.Isolation
	can    Capabilities
	steps  Steps
	failed *UnsupportedError
}

// Plan is how what is wanted is done with what can be done. The error is an *Unsupported: of the first thing that cannot be
// done, in the order of the documentation. It is nil if want says BestEffort. A nil want needs no steps.
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

// inForce notes what is done, lacks what is not, with the reason.
func (p *planner) inForce(format string, args ...any) {
	p.steps.Enforced.InForce = append(p.steps.Enforced.InForce, fmt.Sprintf(format, args...))
}

func (p *planner) failOrWaive(key, reason string) {
	if p.want.BestEffort {
		p.noteMissing(key, reason)
		p.steps.Waived = append(p.steps.Waived, key+" ("+reason+")")
	} else if p.failed == nil {
		p.failed = &UnsupportedError{key, reason}
	}
}

// noteMissing names what comes with something that is asked for, and that this machine does not have. It is no reason to start
// nothing: what the key promises by itself is in force.
func (p *planner) noteMissing(what, reason string) {
	p.steps.Enforced.Missing = append(p.steps.Enforced.Missing, what+" ("+reason+")")
}

// isBounded reports whether the server is kept from more than privileges, and so from steering other processes.
func (p *planner) isBounded() bool {
	return p.want.Write != nil || p.want.Read != nil || p.want.Network != ""
}

func (p *planner) failOnlyLinux(key string) {
	p.failOrWaive(key, p.can.Kernel+" offers nothing for it that is used here")
}

func (p *planner) planTemp() {
	if p.want.PrivateTemp {
		p.steps.Temp = true
		p.inForce("private temp")
	}
}

func (p *planner) planPrivileges() {
	switch {
	case p.isLinux() && (p.want.NoNewPrivileges || p.isBounded()):
		p.steps.NoNewPrivileges = true
		p.inForce("no new privileges")
	case p.want.NoNewPrivileges:
		p.failOnlyLinux("noNewPrivileges")
	}
}

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

// planDomain makes the server a member of a Landlock domain of its own wherever it gets no new privileges: its members look into
// no other process, whatever else the domain forbids.
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

// noDomain says why a domain that restricts no file cannot be made.
func (p *planner) noDomain() string {
	if reason := p.noLandlock(); reason != "" || p.can.Landlock >= landlockRefer {
		return reason
	}
	return fmt.Sprintf("Landlock of %s has version 1, which would make renames between folders fail", p.can.Kernel)
}

func (p *planner) availableFrom(version int) string {
	return fmt.Sprintf("Landlock of %s has version %d, and offers it from %d on", p.can.Kernel, p.can.Landlock, version)
}

// planFilter refuses system calls to a bounded server. What network needs of it has been decided.
func (p *planner) planFilter() {
	own := p.want.OwnSandbox
	switch {
	case !p.isBounded() || !p.isLinux():
		return
	case p.noFilter() != "":
		if p.want.Network != messages.NetworkNone { // else that has failed
			p.noteMissing(partCalls, p.noFilter())
		}
		return
	case own && p.steps.Files == nil: // tracing is all that would keep it from others
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

func (p *planner) noFilter() string {
	if p.can.NoFilter == "" && !hasFilter(p.can.Arch) {
		return "system calls of " + p.can.Arch + " are not filtered by this version"
	}
	return p.can.NoFilter
}

// noLandlock says why files cannot be kept from a server.
func (p *planner) noLandlock() string {
	switch {
	case !p.isLinux():
		return p.can.Kernel + " offers nothing for it that is used here"
	case p.can.Landlock < landlockFiles:
		return p.can.NoLandlock
	}
	return ""
}

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

// exceptPaths returns the paths that a read-only server may write all the same.
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

// pathList is a list of paths for a person: what is beyond three is counted.
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
