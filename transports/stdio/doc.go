// Package stdio connects to servers that are child processes: one message per line, over standard input and output.
//
//	t := stdio.New(stdio.Config{Command: "my-server", Env: env})
//	conn, err := t.Dial(ctx, sink)
//
// Beside the [Transport] it has what a program with children needs: [ChildEnv] makes an environment without the secrets of this
// process, [Output] and [Filter] run a helper to its end, a [Guardian] ends the children of a program that is killed, and
// [HideProcess] and [WithholdDescriptors] keep children from what this process holds.
//
// # How it fits
//
//	Transport.Dial ──> internal/process: find the command, isolate, start, group, reap
//	      │                  └── children: which processes this program has started, for the control socket
//	      v
//	connection ── Send ──> internal/pipe: Queue ──> standard input
//	      ^──── internal/lines: Splitter <── Reader <── standard output; the tail of standard error is kept without secrets
//
// A connection owns its child and the child's whole group from Dial until Released is closed.
//
// # Guarantees
//
// Those of package transports, and further: a child is always reaped, its group is ended with it, and an answer that the child
// delivered before its end reaches the sink before Down. Nothing that a child prints is shown with a configured secret in it.
//
// Not promised: that a process which leaves the group ends with the connection, or that a child of another user (setuid) ends
// with this program. See [Transport] for each system.
package stdio
