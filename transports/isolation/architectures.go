package isolation

// architecture has the numbers that a filter needs of one: its own in linux/audit.h, and those of the system calls.
type architecture struct {
	audit uint32

	clone, clone3, unshare, setns, keyctl, addKey, requestKey, bpf, userfaultfd, perfEventOpen, pidfdGetfd,
	ioctl, prlimit, setAffinity, setScheduler, setParameters, setAttributes, migratePages, movePages, setPriority, setIOPriority,
	ptrace, vmRead, vmWrite, socket, socketpair, ioUringSetup, bind, connect, listen, accept, accept4 uint32
}

// architectures are those whose calls are filtered, by runtime.GOARCH. The numbers come from the kernel's tables of system calls.
// All are little-endian, on which argumentOffset relies.
var architectures = map[string]architecture{
	"amd64": {
		audit:         0xc000003e,
		clone:         56,
		clone3:        435,
		unshare:       272,
		setns:         308,
		keyctl:        250,
		addKey:        248,
		requestKey:    249,
		bpf:           321,
		userfaultfd:   323,
		perfEventOpen: 298,
		pidfdGetfd:    438,
		ioctl:         16,
		prlimit:       302,
		setAffinity:   203,
		setScheduler:  144,
		setParameters: 142,
		setAttributes: 314,
		migratePages:  256,
		movePages:     279,
		setPriority:   141,
		setIOPriority: 251,
		ptrace:        101,
		vmRead:        310,
		vmWrite:       311,
		socket:        41,
		socketpair:    53,
		ioUringSetup:  425,
		bind:          49,
		connect:       42,
		listen:        50,
		accept:        43,
		accept4:       288,
	},
	"arm64": {
		audit:         0xc00000b7,
		clone:         220,
		clone3:        435,
		unshare:       97,
		setns:         268,
		keyctl:        219,
		addKey:        217,
		requestKey:    218,
		bpf:           280,
		userfaultfd:   282,
		perfEventOpen: 241,
		pidfdGetfd:    438,
		ioctl:         29,
		prlimit:       261,
		setAffinity:   122,
		setScheduler:  119,
		setParameters: 118,
		setAttributes: 274,
		migratePages:  238,
		movePages:     239,
		setPriority:   140,
		setIOPriority: 30,
		ptrace:        117,
		vmRead:        270,
		vmWrite:       271,
		socket:        198,
		socketpair:    199,
		ioUringSetup:  425,
		bind:          200,
		connect:       203,
		listen:        201,
		accept:        202,
		accept4:       242,
	},
}

// hasFilter reports whether the calls of an architecture can be filtered.
func hasFilter(arch string) bool { return architectures[arch].audit != 0 }
