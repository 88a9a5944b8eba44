package transports

import "github.com/mcpvisor/mcpvisor/transports/internal/launcher"

// HideProcess keeps other programs of the same user from reading and tracing this process: its environment, its memory, its
// open files, and a core dump. Without it every server that is not isolated reads the environment that ChildEnv withholds,
// through /proc. A program that holds secrets calls it first of all; what was there to be read before the call, in the first
// milliseconds, could be read.
//
// It counts for the whole process and until it executes another program, so it is no option of a connection: an embedding
// program decides. Debuggers, profilers that attach, and tools that read /proc/PID (lsof, the exe link) need the rights of root
// then. What it starts is not hidden.
//
// On Linux it is prctl(PR_SET_DUMPABLE, 0). A program with the rights of root reads all the same. On other systems it does
// nothing and returns nil: macOS and Windows have no call for it that is used here.
func HideProcess() error { return hideProcess() }

// WithholdDescriptors keeps the descriptors that this process was started with, besides the three of every program, from what
// it starts from now on: they are marked close-on-exec (close_range(2)), and none is closed. Those that are opened later are
// marked by Go. A program calls it at its beginning, unless it was given descriptors in order to pass them on.
//
// It counts for the whole process, so no connection does it by itself. Isolated children are given none of them either way. On
// Windows it has nothing to do.
func WithholdDescriptors() error { return launcher.MarkDescriptors(3) }
