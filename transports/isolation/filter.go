package isolation

// Instruction is one instruction of the kernel's classic BPF: Jt and Jf are how many instructions a jump skips if its condition
// is true or false. It is encoded as JSON for the launcher.
type Instruction struct {
	Code uint16 `json:"code"`
	Jt   uint8  `json:"jt"`
	Jf   uint8  `json:"jf"`
	K    uint32 `json:"k"`
}

// The instructions of linux/filter.h that are used, and the numbers of linux/seccomp.h.
const (
	bpfLoad   = 0x20 // BPF_LD | BPF_W | BPF_ABS
	bpfEqual  = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	bpfAtMost = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	bpfAny    = 0x45 // BPF_JMP | BPF_JSET | BPF_K
	bpfAnd    = 0x54 // BPF_ALU | BPF_AND | BPF_K
	bpfReturn = 0x06 // BPF_RET | BPF_K

	dataNumber       = 0 // offset of the call's number in struct seccomp_data
	dataArchitecture = 4 // offset of the architecture that the call was made for

	resultAllow = 0x7fff0000
	// resultDenied is EACCES, which socket(2) documents for a socket that is not allowed.
	resultDenied = 0x00050000 | 13
	// resultForbidden is EPERM, which the other calls document for a caller without the right.
	resultForbidden = 0x00050000 | 1
	// resultAbsent is ENOSYS, after which programs use an older call. With any other error of clone3 no program could start
	// another.
	resultAbsent = 0x00050000 | 38

	// x32 is set in the numbers of a second set of calls of amd64.
	x32 = 0x40000000
)

// argumentOffset returns the offset of the low 32 bits of an argument in struct seccomp_data, on machines that are little-endian.
// For the arguments that are compared here the kernel ignores the rest, and so must a filter: otherwise a request of ioctl with
// bit 40 set would pass it.
func argumentOffset(n uint32) uint32 { return 16 + 8*n }

// The flags of clone(2) and unshare(2) that make a namespace: of mounts, control groups, host names, message queues, users,
// processes and networks. The one of time is a flag of unshare alone.
const (
	namespaceFlags = 0x7e020000
	timeNamespace  = 0x80
)

// The values of arguments that are compared, from the kernel's headers.
const (
	ioctlTypeInput = 0x5412 // TIOCSTI: push a character into a terminal's input
	ioctlPaste     = 0x541c // TIOCLINUX: the console's selection and paste, among others
	familyUnix     = 1
	kindStream     = 1
	kindSequence   = 5
	kindFlags      = 0x80000 | 0x800 // SOCK_CLOEXEC, SOCK_NONBLOCK
	whichUser      = 2               // PRIO_USER
	whichUserIO    = 3               // IOPRIO_WHO_USER
)

// refuseCalls returns instructions that make the calls with these numbers fail with a result.
func refuseCalls(result uint32, numbers ...uint32) (program []Instruction) {
	for _, n := range numbers {
		program = append(program, Instruction{bpfEqual, 0, 1, n}, Instruction{bpfReturn, 0, 0, result})
	}
	return program
}

// checkCall returns instructions that run body for the call of that number. A call that passes the end of body is allowed.
func checkCall(number uint32, body ...Instruction) []Instruction {
	body = append(body, Instruction{bpfReturn, 0, 0, resultAllow})
	return append([]Instruction{{bpfEqual, 0, uint8(len(body)), number}}, body...)
}

// buildFilter returns a program for the kernel that refuses calls for which an isolated server has no use: those that control
// other processes, keep keys or make kernel memory reachable; unless ownSandbox is set, namespaces and tracing; with noSockets,
// sockets other than connected pairs, and calls that could bring one from elsewhere. It compares numbers and registers only,
// because another thread can change the memory that a call points at after the filter has read it.
func buildFilter(a architecture, noSockets, ownSandbox bool) []Instruction {
	forbid := Instruction{bpfReturn, 0, 0, resultForbidden}
	deny := Instruction{bpfReturn, 0, 0, resultDenied}
	load := func(n uint32) Instruction { return Instruction{bpfLoad, 0, 0, argumentOffset(n)} }
	program := []Instruction{
		{bpfLoad, 0, 0, dataArchitecture},
		{bpfEqual, 1, 0, a.audit}, deny, // a call of another architecture has another meaning under the same number
		{bpfLoad, 0, 0, dataNumber},
		{bpfAtMost, 0, 1, x32}, deny,
	}
	add := func(part []Instruction) { program = append(program, part...) }
	add(refuseCalls(resultForbidden, a.keyctl, a.addKey, a.requestKey, a.bpf, a.userfaultfd, a.perfEventOpen, a.pidfdGetfd))
	add(checkCall(a.ioctl, load(1), Instruction{bpfEqual, 1, 0, ioctlTypeInput}, Instruction{bpfEqual, 0, 1, ioctlPaste}, forbid))
	// These calls name a process by its number in the first argument; 0 is the caller.
	for _, number := range []uint32{a.prlimit, a.setAffinity, a.setScheduler, a.setParameters, a.setAttributes, a.migratePages, a.movePages} {
		add(checkCall(number, load(0), Instruction{bpfEqual, 1, 0, 0}, forbid))
	}
	add(checkCall(a.setPriority, load(0), Instruction{bpfEqual, 2, 0, whichUser}, load(1), Instruction{bpfEqual, 1, 0, 0}, forbid))
	add(checkCall(a.setIOPriority, load(0), Instruction{bpfEqual, 2, 0, whichUserIO}, load(1), Instruction{bpfEqual, 1, 0, 0}, forbid))
	if !ownSandbox {
		add(refuseCalls(resultAbsent, a.clone3)) // its flags are in memory, where the filter cannot see them
		add(refuseCalls(resultForbidden, a.setns, a.ptrace, a.vmRead, a.vmWrite))
		add(checkCall(a.clone, load(0), Instruction{bpfAny, 0, 1, namespaceFlags}, forbid))
		add(checkCall(a.unshare, load(0), Instruction{bpfAny, 0, 1, namespaceFlags | timeNamespace}, forbid))
	}
	if noSockets {
		add(refuseCalls(resultDenied, a.socket, a.ioUringSetup, a.bind, a.connect, a.listen, a.accept, a.accept4))
		// A pair that keeps messages apart without a connection (SOCK_DGRAM) could send to any address.
		add(checkCall(a.socketpair, load(0), Instruction{bpfEqual, 1, 0, familyUnix}, deny,
			load(1), Instruction{bpfAnd, 0, 0, ^uint32(kindFlags)},
			Instruction{bpfEqual, 2, 0, kindStream}, Instruction{bpfEqual, 1, 0, kindSequence}, deny))
	}
	return append(program, Instruction{bpfReturn, 0, 0, resultAllow})
}
