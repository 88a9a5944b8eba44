package isolation_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// The machines of the tables.
var (
	today   = isolation.Capabilities{System: "linux", Arch: "amd64", Kernel: "Linux 6.18", Landlock: 7}
	old     = isolation.Capabilities{System: "linux", Arch: "arm64", Kernel: "Linux 5.15", Landlock: 1, NoNamespace: "switched off"}
	ancient = isolation.Capabilities{System: "linux", Arch: "amd64", Kernel: "Linux 5.4", NoLandlock: "no Landlock", NoFilter: "no filter", NoNamespace: "forbidden"}
	recent  = isolation.Capabilities{System: "linux", Arch: "amd64", Kernel: "Linux 6.8", Landlock: 4}
	strange = isolation.Capabilities{System: "linux", Arch: "mips", Kernel: "Linux 6.18", Landlock: 7}
	mac     = isolation.Capabilities{System: "darwin", Arch: "arm64", Kernel: "macOS", NoNamespace: "only Linux"}
	windows = isolation.Capabilities{System: "windows", Arch: "amd64", Kernel: "Windows", NoNamespace: "only Linux"}
)

// What comes with write, read and network on a machine of today.
const (
	apart = ", no look into other processes, no signals to other processes"
	fewer = ", fewer system calls"
)

// A kernel that is too old for what comes with a key keeps no server from starting, and what it lacks is named.
func TestWhatAKernelIsTooOldForIsNamed(t *testing.T) {
	for _, c := range []struct {
		want    messages.Isolation
		can     isolation.Capabilities
		missing string
	}{
		{*messages.DefaultIsolation(), today, ""},
		{*messages.DefaultIsolation(), recent, ""},
		{*messages.DefaultIsolation(), old, "no look into other processes (Landlock of Linux 5.15 has version 1, which would make " +
			"renames between folders fail)"},
		{*messages.DefaultIsolation(), ancient, "no look into other processes (no Landlock)"},
		{messages.Isolation{Write: []string{}}, recent, "no controls of devices (Landlock of Linux 6.8 has version 4, and offers it " +
			"from 5 on); no signals and abstract sockets of other processes (Landlock of Linux 6.8 has version 4, and offers it from 6 on)"},
		{messages.Isolation{Network: messages.NetworkLoopback}, strange,
			"fewer system calls (system calls of mips are not filtered by this version)"},
	} {
		steps, err := isolation.Plan(&c.want, c.can)
		if got := strings.Join(steps.Enforced.Missing, "; "); err != nil || got != c.missing || len(steps.Waived) > 0 {
			t.Errorf("%+v on %s: %v, %q, waived %v", c.want, c.can.Kernel, err, got, steps.Waived)
		}
		for _, o := range isolation.Parts(c.can) {
			if o.Given != (o.Reason == "") || strings.Contains(c.missing, o.Key) && o.Given {
				t.Errorf("%s: %+v, missing %q", c.can.Kernel, o, c.missing)
			}
		}
	}
	// A browser's sandbox needs what keeps it from others: without a domain that is the filter alone.
	_, err := isolation.Plan(&messages.Isolation{Network: messages.NetworkNone, OwnSandbox: true}, old)
	var no *isolation.UnsupportedError
	if !errors.As(err, &no) || no.Key != "ownSandbox" {
		t.Error(err)
	}
}

func TestWhatCannotBeEnforcedIsRefusedAndNeverWeaker(t *testing.T) {
	seeds.Shows(t, "002.9.sandbox")
	minute := messages.Duration(time.Minute)
	for _, c := range []struct {
		name string
		want messages.Isolation
		can  isolation.Capabilities
		said string // what is in force, or "key: reason"
	}{
		{"nothing", messages.Isolation{BestEffort: true}, windows, ""},
		{"default", *messages.DefaultIsolation(), ancient, "private temp, no new privileges"},
		{"default", *messages.DefaultIsolation(), mac, "! noNewPrivileges: macOS offers nothing for it that is used here"},
		{"temp", messages.Isolation{PrivateTemp: true}, windows, "private temp"},
		{"read-only", messages.Isolation{Write: []string{}}, today, "no new privileges, read-only" + apart + fewer},
		{"read-only but", messages.Isolation{PrivateTemp: true, Write: []string{"a", "b", "c", "d", "e"}}, today,
			"private temp, no new privileges, read-only except a, b, c and 2 more and its temp" + apart + fewer},
		{"read-only", messages.Isolation{Write: []string{}}, old,
			"! write: Landlock of Linux 5.15 has version 1, and keeps files from being emptied from 3 on"},
		{"read-only", messages.Isolation{Write: []string{}}, ancient, "! write: no Landlock"},
		{"read-only", messages.Isolation{Write: []string{}}, windows, "! write: Windows offers nothing for it that is used here"},
		{"reads", messages.Isolation{Read: []string{"a\x1b[2J"}}, old,
			"no new privileges, reads only the system's files and its own program, a�[2J, no look into other processes" + fewer},
		{"reads", messages.Isolation{Read: []string{}}, ancient, "! read: no Landlock"},
		{"none", messages.Isolation{Network: messages.NetworkNone}, today, "no new privileges" + apart + ", no network and no sockets" + fewer},
		{"none", messages.Isolation{Network: messages.NetworkNone}, old, "no new privileges, no network and no sockets" + fewer},
		{"none", messages.Isolation{Network: messages.NetworkNone}, ancient, "! network: no filter"},
		{"none", messages.Isolation{Network: messages.NetworkNone}, strange,
			"! network: system calls of mips are not filtered by this version"},
		{"none", messages.Isolation{Network: messages.NetworkNone}, mac, "! network: macOS offers nothing for it that is used here"},
		{"loopback", messages.Isolation{Network: messages.NetworkLoopback}, strange,
			"no new privileges" + apart + ", no network but its own loopback"},
		{"loopback", messages.Isolation{Network: messages.NetworkLoopback}, old, "! network: switched off"},
		{"limits", messages.Isolation{Memory: 1 << 30, FileSize: 1 << 20, Files: 64, CPUTime: minute}, ancient,
			"at most 1GiB of memory per process, files of at most 1MiB, at most 64 open files per process, " +
				"at most 1m0s of processor time per process"},
		{"limits", messages.Isolation{FileSize: 1 << 20, Files: 64, CPUTime: minute}, mac,
			"files of at most 1MiB, at most 64 open files per process, at most 1m0s of processor time per process"},
		{"limits", messages.Isolation{Files: 64}, windows, "! files: Windows offers nothing for it that is used here"},
		{"memory", messages.Isolation{Memory: 1 << 30}, mac, "! memory: macOS offers nothing for it that is used here"},
	} {
		t.Run(c.name+" on "+c.can.Kernel, func(t *testing.T) {
			steps, err := isolation.Plan(&c.want, c.can)
			var no *isolation.UnsupportedError
			said := strings.Join(steps.Enforced.InForce, ", ")
			if errors.As(err, &no) {
				said = "! " + no.Key + ": " + no.Reason
			}
			if said != c.said {
				t.Errorf("%s\nwant %s", said, c.said)
			}
			if err != nil && !reflect.DeepEqual(steps, isolation.Steps{}) {
				t.Error("what is refused has steps")
			}
			if len(steps.Waived) > 0 {
				t.Errorf("started without %v, which nobody allowed", steps.Waived)
			}
			// With best effort the same is in force and the rest is named, each key of it.
			c.want.BestEffort = true
			best, err := isolation.Plan(&c.want, c.can)
			if err != nil {
				t.Fatal(err)
			}
			if missing := strings.Join(best.Waived, "; "); (no != nil) != (missing != "") ||
				no != nil && !strings.Contains(missing, no.Key+" ("+no.Reason+")") {
				t.Errorf("missing: %q", missing)
			}
		})
	}
}

// What a plan names as in force has its step, and nothing else has: the status says exactly what is done.
func TestEveryWishHasItsStepOrIsNamed(t *testing.T) {
	if steps, err := isolation.Plan(nil, today); err != nil || steps.Launch() || steps.Temp {
		t.Error(steps, err)
	}
	all := messages.Isolation{PrivateTemp: true, NoNewPrivileges: true, Write: []string{}, Read: []string{},
		Network: messages.NetworkNone, Memory: 1 << 30, FileSize: 1, Files: 64, CPUTime: 1500e6, BestEffort: true}
	steps, err := isolation.Plan(&all, today)
	want := []isolation.Limit{{Key: "memory", Most: 1 << 30}, {Key: "fileSize", Most: 1}, {Key: "files", Most: 64}, {Key: "cpuTime", Most: 2}}
	if err != nil || !steps.Temp || !steps.NoNewPrivileges || steps.Files == nil || steps.Files.Write == nil ||
		steps.Files.Read == nil || steps.Filter == nil || steps.Loopback || !reflect.DeepEqual(steps.Limits, want) ||
		len(steps.Enforced.Missing) > 0 || len(steps.Enforced.InForce) != 12 {
		t.Errorf("%+v, %v", steps, err)
	}
	steps, err = isolation.Plan(&all, windows)
	if err != nil || steps.Launch() || len(steps.Enforced.InForce) != 1 || len(steps.Waived) != 8 || len(steps.Enforced.Missing) != 8 {
		t.Errorf("%+v, %v", steps, err)
	}
}

// filterOf gives the verdicts of a plan's filter, run as the kernel would.
func filterOf(t *testing.T, want messages.Isolation, arch string) func(audit, number uint32, args ...uint64) uint32 {
	t.Helper()
	can := today
	can.Arch = arch
	steps, err := isolation.Plan(&want, can)
	if err != nil {
		t.Fatal(err)
	}
	var program []bpf.Instruction
	for _, i := range steps.Filter {
		program = append(program, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return func(audit, number uint32, args ...uint64) uint32 {
		data := make([]byte, 64)
		put := func(at int, v uint32) { binary.BigEndian.PutUint32(data[at:], v) } // as this machine reads it, and not the kernel
		put(0, number)
		put(4, audit)
		for n, v := range args {
			put(16+8*n, uint32(v))
			put(20+8*n, uint32(v>>32))
		}
		verdict, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(verdict)
	}
}

const (
	allowed   = 0x7fff0000
	denied    = 0x0005000d
	forbidden = 0x00050001
	absent    = 0x00050026
)

// Of all numbers that a call can have, these are refused whatever their arguments are, and no others.
func TestTheFilterRefusesWhatItNames(t *testing.T) {
	type verdicts map[uint32]uint32
	base := verdicts{250: forbidden, 248: forbidden, 249: forbidden, 321: forbidden, 323: forbidden, 298: forbidden, 438: forbidden}
	sandbox := verdicts{435: absent, 308: forbidden, 101: forbidden, 310: forbidden, 311: forbidden}
	sockets := verdicts{41: denied, 425: denied, 49: denied, 42: denied, 50: denied, 43: denied, 288: denied, 53: denied}
	arm := verdicts{219: forbidden, 217: forbidden, 218: forbidden, 280: forbidden, 282: forbidden, 241: forbidden, 438: forbidden,
		435: absent, 268: forbidden, 117: forbidden, 270: forbidden, 271: forbidden}
	for name, c := range map[string]struct {
		want    messages.Isolation
		arch    string
		audit   uint32
		refused []verdicts
	}{
		"write":     {messages.Isolation{Write: []string{}}, "amd64", 0xc000003e, []verdicts{base, sandbox}},
		"loopback":  {messages.Isolation{Network: messages.NetworkLoopback}, "amd64", 0xc000003e, []verdicts{base, sandbox}},
		"none":      {messages.Isolation{Network: messages.NetworkNone}, "amd64", 0xc000003e, []verdicts{base, sandbox, sockets}},
		"a browser": {messages.Isolation{Network: messages.NetworkNone, OwnSandbox: true}, "amd64", 0xc000003e, []verdicts{base, sockets}},
		"arm64":     {messages.Isolation{Read: []string{}}, "arm64", 0xc00000b7, []verdicts{arm}},
	} {
		t.Run(name, func(t *testing.T) {
			run := filterOf(t, c.want, c.arch)
			refused := verdicts{}
			for _, v := range c.refused {
				maps.Copy(refused, v)
			}
			for number := range uint32(600) {
				want := uint32(allowed)
				if v, no := refused[number]; no {
					want = v
				}
				if got := run(c.audit, number); got != want {
					t.Errorf("call %d: %#x, want %#x", number, got, want)
				}
				if run(c.audit, 0x40000000|number) != denied || run(0x40000003, number) != denied {
					t.Errorf("call %d of another set is allowed", number)
				}
			}
		})
	}
}

// What the arguments decide. The kernel looks at 32 bits of each of these, so bits above make no difference.
func TestTheFilterLooksAtArguments(t *testing.T) {
	none := filterOf(t, messages.Isolation{Network: messages.NetworkNone}, "amd64")
	browser := filterOf(t, messages.Isolation{Network: messages.NetworkNone, OwnSandbox: true}, "amd64")
	const far = 1 << 40
	for name, c := range map[string]struct {
		number      uint32
		args        []uint64
		want, wants uint32 // of none, and of a browser if it is another
	}{
		"type":                 {16, []uint64{0, 0x5412}, forbidden, 0},
		"type far":             {16, []uint64{0, 0x5412 | far}, forbidden, 0},
		"paste":                {16, []uint64{0, 0x541c | far}, forbidden, 0},
		"ask for the size":     {16, []uint64{0, 0x5413}, allowed, 0},
		"clone":                {56, []uint64{0x11}, allowed, 0},
		"clone a thread":       {56, []uint64{0x3d0f00}, allowed, 0},
		"clone a user":         {56, []uint64{0x10000000 | 0x11}, forbidden, allowed},
		"unshare files":        {272, []uint64{0x400}, allowed, 0},
		"unshare a network":    {272, []uint64{0x40000000}, forbidden, allowed},
		"unshare the time":     {272, []uint64{0x80 | far}, forbidden, allowed},
		"own limit":            {302, []uint64{0, 7}, allowed, 0},
		"limit of another":     {302, []uint64{1, 7}, forbidden, 0},
		"own affinity":         {203, []uint64{0}, allowed, 0},
		"affinity of another":  {203, []uint64{77}, forbidden, 0},
		"own priority":         {141, []uint64{0, 0, 5}, allowed, 0},
		"priority of another":  {141, []uint64{0, 77, 5}, forbidden, 0},
		"of the whole user":    {141, []uint64{2, 0, 5}, forbidden, 0},
		"own disk":             {251, []uint64{1, 0, 5}, allowed, 0},
		"disk of another":      {251, []uint64{1, 77, 5}, forbidden, 0},
		"disk of the user":     {251, []uint64{3, 0, 5}, forbidden, 0},
		"pair of streams":      {53, []uint64{1, 1 | 0x80800}, allowed, 0},
		"pair of sequences":    {53, []uint64{1, 5}, allowed, 0},
		"pair of datagrams":    {53, []uint64{1, 2}, denied, 0},
		"hidden datagrams":     {53, []uint64{1, 2 | 0x80000}, denied, 0},
		"pair of another kind": {53, []uint64{2, 1}, denied, 0},
	} {
		if got := none(0xc000003e, c.number, c.args...); got != c.want {
			t.Errorf("%s: %#x", name, got)
		}
		if c.wants == 0 {
			c.wants = c.want
		}
		if got := browser(0xc000003e, c.number, c.args...); got != c.wants {
			t.Errorf("%s of a browser: %#x", name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for want, i := range map[string]*messages.Isolation{
		"":                   nil,
		"[]":                 {Write: []string{"./data", "${HOME}"}, Files: 16, Memory: 16 << 20},
		"write[1]":           {Write: []string{"a", ""}},
		"read[0]":            {Read: []string{"~/x"}},
		"network":            {Network: "some"},
		"memory, files":      {Memory: 1, Files: 1},
		"fileSize, cpuTime":  {FileSize: -1, CPUTime: 5},
		"write[0], write[1]": {Write: []string{"~", "a\x00"}},
	} {
		var keys []string
		for _, f := range isolation.Check(i) {
			if keys = append(keys, f.Key); f.Text == "" || f.Fix == "" {
				t.Errorf("%+v", f)
			}
		}
		if got := strings.Join(keys, ", "); got != strings.Trim(want, "[]") && got != want {
			t.Errorf("%+v: %s, want %s", i, got, want)
		}
	}
}

func ExampleOffers() {
	can := isolation.Capabilities{System: "darwin", Arch: "arm64", Kernel: "macOS"}
	for _, o := range isolation.Offers(can)[1:3] {
		fmt.Println(o.Key, o.Given, o.Reason)
	}
	// Output:
	// noNewPrivileges false macOS offers nothing for it that is used here
	// write false macOS offers nothing for it that is used here
}

func ExamplePlan() {
	want := messages.Isolation{PrivateTemp: true, Write: []string{"./data"}, Network: messages.NetworkNone}
	can := isolation.Capabilities{System: "linux", Arch: "amd64", Kernel: "Linux 6.12.0", Landlock: 6}
	steps, err := isolation.Plan(&want, can)
	fmt.Println(steps.Enforced.String(), err)
	can.Landlock, can.NoLandlock = 0, "Landlock is switched off when it starts"
	_, err = isolation.Plan(&want, can)
	fmt.Println(err)
	// Output:
	// private temp, no new privileges, read-only except ./data and its temp, no look into other processes, no signals to other processes, no network and no sockets, fewer system calls <nil>
	// isolation.write cannot be enforced on this machine: Landlock is switched off when it starts
}
