// Package control lets one program ask another about its manager: `mcpvisor up` serves a local control socket, and
// the other commands of the same project talk to it instead of starting every server a second time. It also keeps the
// journal, which tells the past of a manager that has ended.
//
// The side that owns a manager:
//
//	location, err := control.LocationOf(projectDir)
//	srv, err := control.Serve(location, control.Local(m, control.LocalConfig{Project: projectDir}))
//	defer srv.Close()
//
// The side that asks:
//
//	up, err := control.Dial(ctx, location)
//	if errors.Is(err, control.ErrNotRunning) { … start a manager, and use control.Local(m, …) in the same way … }
//
// Both give a [Backend], so that a command is written once.
//
// # How it fits
//
// The command mcpvisor is the caller on both sides. [Local] calls the supervisor.Manager of its own process; [Client]
// sends the same calls over the socket to a [Server], which hands them to its Backend. Package fence decides for each
// connection which rights its peer has; packages access and audit supply the types of rules and records. This package
// owns the files of a project (socket, lock, journal), the protocol on the socket, and the questions that callers
// have not answered yet. It owns no server and no manager.
//
//	mcpvisor call ── Dial ──► Client ══ socket ══► Server ── authorizePeer ──► Local ──► Manager
//	                                                          (fence)
//	mcpvisor call, nothing runs ──────────────────────────────────────────────► Local ──► Manager
//
// What travels are the commands of package messages, which actors of this and of other machines send as well:
//
//	POST /v4/CallTool   the command's protobuf form
//	◄── 200             CallProgress, CallerQuestion, … and last CallToolReply, or Failure: see writeFrame
//	POST /v4/AnswerQuestion …   the answer to a CallerQuestion, from the process that was asked
//
// To add a command, describe it in messages.proto, give it a row in the table commands, and a method in Backend. Its rights on
// other machines are in the table of package remote.
//
// # Guarantees
//
//   - The socket has mode 0600 and stands in a directory of mode 0700 that belongs to the user, so only the user
//     (or root) can connect. A directory that others can write to is refused.
//   - A process that a server or a helper of this program has started is refused, and an unknown process may read
//     and change nothing: package fence describes how a process is recognised, and how it could evade that.
//   - Only the process that was asked a question can answer it, and a permission that its person gives for the
//     session holds for the callers of that terminal alone.
//   - At most one process serves a location at a time, also if several begin at once. The files of a dead process
//     are replaced.
//   - The bytes of a tool's result, of a resource and of a prompt reach the asking side unchanged, and so do all
//     fields of an error: outcome, class, code.
//   - Progress comes before the answer, in order. A question of a server goes to the caller whose call it belongs
//     to, if that caller answers questions; if the caller is not known, to the manager's own person.
//   - A call that could not be handed over is not-sent; one whose answer is lost on the socket has an unknown
//     outcome.
//   - The journal holds no value of env or headers and no argument or result of a call. It takes 2 MiB at most.
//
// # Not promised
//
// That two versions of mcpvisor understand each other (a different protocol is refused by name, in both directions), and, on Windows,
// more protection than the access rules of the user's own profile directory give.
//
// Public for the command: what it exports may change without notice.
package control
