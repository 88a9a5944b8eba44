// Package isolation decides how a server is kept from what it was not given. It is pure: the caller passes in what this machine
// can do, and package transports/stdio performs what was decided.
//
//	steps, err := isolation.Plan(spec.Isolation, stdio.Capabilities(ctx))
//
// An error means that the configuration asks for something that this machine cannot enforce: then nothing may be started. With
// BestEffort there is no error, and Steps.Enforced names what is missing. Nothing is ever weaker than it says.
//
// # How it fits
//
// Package supervisor/config calls [Check] when it reads an entry. For each start of a server, package stdio/internal/process
// calls [Plan] with the Capabilities that it has asked the kernel for, makes the private temporary folder, and hands the [Steps] to
// internal/launcher, which performs them in the child before it executes the server's program. The command "config isolation"
// prints [Offers] and [Parts]. This package owns no state.
//
//	messages.Isolation ─┐
//	                    ├─ Plan ─> Steps ─> stdio/internal/process, internal/launcher
//	Capabilities ───────┘            └─ Enforced ─> the server's status
//
// The keys, the systems on which each is enforced, and by which means:
//
//   - privateTemp (everywhere): a folder (0700) of this connection in the system's temporary folder, named by TMPDIR, TMP and
//     TEMP, removed when the connection has ended. One that a killed manager left behind is removed by the next one. A
//     program that writes to /tmp by name still gets there, unless write says otherwise.
//   - noNewPrivileges (Linux): programs that are setuid or have file capabilities run without them, sudo and ping among them,
//     and newuidmap of containers without root. A server that runs as root has what root has. With Landlock 2 (5.19) the
//     server is also in a domain of its own: it looks into and traces no process that it did not start, through /proc or
//     otherwise (root reads environments all the same), and nothing of its family can mount. Renames and links are as ever.
//   - write (Linux with Landlock 3, that is 6.2): files are created, changed, truncated, renamed and removed only below the
//     named ones, in the private temporary folder, and in Devices. The owner, permissions, extended attributes and times of any
//     file can still be changed by its owner (chmod, chown, setxattr, utime). Symbolic links in the named folders lead nowhere
//     new. Terminals cannot be read either, nor can files that appear in / or /dev after the start. Shared memory
//     (/dev/shm) can be used only if it is listed.
//   - read (Linux with Landlock 1, 5.13): files are read and executed, and folders listed, only below the named ones, those
//     of write, the program itself and the system's own: SystemPaths, which hold /opt, /sys, /etc, and /proc with
//     the command lines of all processes. Of /dev only Devices. Whether a file exists can still be asked.
//   - network none (Linux on amd64 and arm64): a system call filter refuses every socket but connected pairs (SOCK_STREAM,
//     SOCK_SEQPACKET), io_uring, which could create one past it, and bind, connect, listen and accept on inherited sockets.
//   - network loopback (Linux, where user namespaces are allowed): a network of its own with its own loopback in it. Of other
//     programs' sockets, those in the file system can be reached.
//   - memory (Linux): what each process maps to write, touched or not, and so more than it uses: a small Node server needs
//     some 128MiB. Allocations beyond fail.
//   - files, fileSize, cpuTime (Linux, macOS): open descriptors, the length of a file that is written, and processor seconds
//     of each process. A process that exceeds cpuTime is killed, and a server is restarted then as after any other death.
//
// With write, read or network also, as far as the kernel has it:
//
//   - no signal reaches a process that the server did not start, and no abstract socket of one is reached (Landlock 6, 6.12).
//     A program that checks with kill(ppid, 0) whether its parent lives takes the refusal for its parent's end.
//   - devices are not controlled (ioctl, Landlock 5, 6.10): with write only those listed there, else all but terminals.
//   - fewer system calls (amd64 and arm64): no namespaces, no tracing, also of its own children; no keyrings of the kernel, bpf,
//     userfaultfd, perf_event_open; limits, affinity and priority of none but the caller itself (0 for its number: a thread
//     that names itself by its own is refused); no TIOCSTI and TIOCLINUX. clone3 is answered as by a kernel without it. A
//     program of another architecture (32 bit) can do nothing. ownSandbox leaves out namespaces and tracing, for browsers,
//     and opens the files of /proc that belong to the server's user for writing: the map of a user namespace is one.
//
// A kernel that is too old for one of these parts, or for the domain of noNewPrivileges, keeps no server from starting:
// Enforced.Missing names it, and Parts.
//
// Not offered: a bound for the number of processes, because the kernel counts those of a user and not of a server; a limit over
// all processes of a server together, which needs a delegated control group; access to some hosts only. Processes of one user
// share much else: isolation limits the harm of a mistake, and is no border against an enemy. A virtual machine or a container is
// that.
//
// Guarantees: a plan promises nothing that the capabilities do not have, and Enforced names what is in force. The functions keep
// nothing.
//
// Public for the configuration and the command: what it exports may change without notice.
package isolation
