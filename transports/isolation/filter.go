package isolation

// Instruction is one of the kernel's classic BPF.
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

	dataNumber       = 0 // where struct seccomp_data has the number of the call
	dataArchitecture = 4 // and the architecture that it was made for

	resultAllow = 0x7fff0000
	// resultDenied is EACCES, which socket(2) documents for a socket that may not be.
	resultDenied = 0x00050000 | 13
	// resultForbidden is EPERM, which the other calls document for who may not.
	resultForbidden = 0x00050000 | 1
	// resultAbsent is ENOSYS: programs take an older call then. Any other error of clone3 ends every start of a program.
	resultAbsent = 0x00050000 | 38

	// x32 is set in the numbers of a second set of calls of amd64.
	x32 = 0x40000000
)

// argumentOffset is where struct seccomp_data has the low 32 bits of an argument, on machines that are little-endian. The kernel looks
// at no more of the arguments that are compared here, so neither may a filter: bit 40 of an ioctl's request passes it otherwise.
func argumentOffset(n uint32) uint32 { return 16 + 8*n }

// The flags of clone(2) and unshare(2) that make a namespace: of mounts, control groups, names, message queues, users,
// processes and networks. That of the time is a flag of unshare alone.
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

// refuseCalls makes calls fail with a result.
func refuseCalls(result uint32, numbers ...uint32) (program []Instruction) {
	for _, n := range numbers {
		program = append(program, Instruction{bpfEqual, 0, 1, n}, Instruction{bpfReturn, 0, 0, result})
	}
	return program
}

// checkCall runs body for the call of that number. What falls out of body is allowed.
func checkCall(number uint32, body ...Instruction) []Instruction {
	body = append(body, Instruction{bpfReturn, 0, 0, resultAllow})
	return append([]Instruction{{bpfEqual, 0, uint8(len(body)), number}}, body...)
}

// buildFilter is a program for the kernel that refuses what a confined server has no use for: what steers other processes, keeps
// keys or makes kernel memory reachable; unless ownSandbox is set, namespaces and tracing; with noSockets, sockets but connected
// pairs, and whatever could bring one from elsewhere. It compares numbers and registers: what a call points at can be changed
// by another thread after it was looked at.
func buildFilter(a architecture, noSockets, ownSandbox bool) []Instruction {
	forbid := Instruction{bpfReturn, 0, 0, resultForbidden}
	deny := Instruction{bpfReturn, 0, 0, resultDenied}
	load := func(n uint32) Instruction { return Instruction{bpfLoad, 0, 0, argumentOffset(n)} }
	program := []Instruction{
		{bpfLoad, 0, 0, dataArchitecture},
		{bpfEqual, 1, 0, a.audit}, deny, // its numbers mean something else
		{bpfLoad, 0, 0, dataNumber},
		{bpfAtMost, 0, 1, x32}, deny,
	}
	add := func(part []Instruction) { program = append(program, part...) }
	add(refuseCalls(resultForbidden, a.keyctl, a.addKey, a.requestKey, a.bpf, a.userfaultfd, a.perfEventOpen, a.pidfdGetfd))
	add(checkCall(a.ioctl, load(1), Instruction{bpfEqual, 1, 0, ioctlTypeInput}, Instruction{bpfEqual, 0, 1, ioctlPaste}, forbid))
	// Of a process that is named by its number, the first argument; 0 is the caller.
	for _, number := range []uint32{a.prlimit, a.setAffinity, a.setScheduler, a.setParameters, a.setAttributes, a.migratePages, a.movePages} {
		add(checkCall(number, load(0), Instruction{bpfEqual, 1, 0, 0}, forbid))
	}
	add(checkCall(a.setPriority, load(0), Instruction{bpfEqual, 2, 0, whichUser}, load(1), Instruction{bpfEqual, 1, 0, 0}, forbid))
	add(checkCall(a.setIOPriority, load(0), Instruction{bpfEqual, 2, 0, whichUserIO}, load(1), Instruction{bpfEqual, 1, 0, 0}, forbid))
	if !ownSandbox {
		add(refuseCalls(resultAbsent, a.clone3)) // its flags are in memory
		add(refuseCalls(resultForbidden, a.setns, a.ptrace, a.vmRead, a.vmWrite))
		add(checkCall(a.clone, load(0), Instruction{bpfAny, 0, 1, namespaceFlags}, forbid))
		add(checkCall(a.unshare, load(0), Instruction{bpfAny, 0, 1, namespaceFlags | timeNamespace}, forbid))
	}
	if noSockets {
		add(refuseCalls(resultDenied, a.socket, a.ioUringSetup, a.bind, a.connect, a.listen, a.accept, a.accept4))
		// A pair that keeps messages apart without a connection (SOCK_DGRAM) can send to any address.
		add(checkCall(a.socketpair, load(0), Instruction{bpfEqual, 1, 0, familyUnix}, deny,
			load(1), Instruction{bpfAnd, 0, 0, ^uint32(kindFlags)},
			Instruction{bpfEqual, 2, 0, kindStream}, Instruction{bpfEqual, 1, 0, kindSequence}, deny))
	}
	return append(program, Instruction{bpfReturn, 0, 0, resultAllow})
}
