package stdio

import "github.com/mcpvisor/mcpvisor/transports/internal/launcher"

// HideProcess keeps other programs of the same user from reading and tracing this process: its environment, its memory, its open
// files, and a core dump. Without it every server that is not isolated can read through /proc the environment that [ChildEnv]
// withholds. A program that holds secrets calls it before all else: in the first milliseconds, before the call, it can be read.
//
// It counts for the whole process and until that executes another program, so that it is no option of a connection: an embedding
// program decides. Debuggers, profilers that attach, and tools that read /proc/PID (lsof, the exe link) need the rights of root
// then. The children of this process are not hidden.
//
// On Linux it is prctl(PR_SET_DUMPABLE, 0), which does not stop a program with the rights of root. On other systems it does
// nothing and returns nil: macOS and Windows have no call for it that is used here.
func HideProcess() error { return hideProcess() }

// WithholdDescriptors keeps the descriptors that this process was started with, besides the three of every program, from the
// children that it starts from now on. It marks them close-on-exec (close_range(2)) and closes none. Go marks those that are
// opened later by itself. A program calls it at its beginning, unless it was given descriptors in order to pass them on.
//
// It counts for the whole process, so that no connection calls it by itself. Isolated children are given none of them in any
// case. On Windows it has nothing to do.
func WithholdDescriptors() error { return launcher.MarkDescriptors(3) }
