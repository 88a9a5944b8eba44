// Package isolation decides how a server is kept from what it was not given. It is pure: what this machine can do is passed
// in, and package transports performs what was decided.
//
//	steps, err := isolation.Plan(spec.Isolation, transports.Capabilities(ctx))
//
// An error says that something was asked for which this machine cannot enforce: then nothing may be started. With BestEffort
// there is no error, and Steps.Enforced says what is missing. Nothing is ever weaker than it says.
//
// What is enforced, and by what:
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
//     file can still be changed by who owns it (chmod, chown, setxattr, utime). What the named folders hold of symbolic links
//     leads nowhere new. Terminals are not read either; what appears in / or /dev after the start, neither. Shared memory
//     (/dev/shm) is there for who lists it.
//   - read (Linux with Landlock 1, 5.13): files are read and executed, and folders listed, only below the named ones, those
//     of write, the program itself and what belongs to the system: SystemPaths, which hold /opt, /sys, /etc, and /proc with
//     the command lines of all processes. Of /dev only Devices. Whether a file exists can still be asked.
//   - network none (Linux on amd64 and arm64): a system call filter refuses every socket but connected pairs (SOCK_STREAM,
//     SOCK_SEQPACKET), io_uring, which could create one past it, and bind, connect, listen and accept of what was handed in.
//   - network loopback (Linux, where user namespaces are allowed): a network of its own with its own loopback in it. Of other
//     programs' sockets, those in the file system can be reached.
//   - memory (Linux): what each process maps to write, touched or not, and so more than it uses: a small Node server needs
//     some 128MiB. What is beyond fails to be allocated.
//   - files, fileSize, cpuTime (Linux, macOS): open descriptors, the length of a file that is written, and processor seconds
//     of each process. Who exceeds cpuTime is killed, and restarted as any server that dies.
//
// With write, read or network also, as far as the kernel has it:
//
//   - no signal reaches a process that the server did not start, and no abstract socket of one is reached (Landlock 6, 6.12).
//     A program that asks with kill(ppid, 0) whether its parent lives takes that for its end.
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
// Not offered: a number of processes, because the kernel counts those of a user and not of a server; a limit over all
// processes of a server together, which needs a delegated control group; access to some hosts only. Processes that share a
// user share much else: isolation is a fence for what may go wrong, and no border between enemies. A virtual machine or a
// container is that.
package isolation
