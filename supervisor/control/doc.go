// Package control lets one program ask another what its manager knows: `mcpvisor up` serves a local control socket, and
// the other commands of the same project talk to it instead of starting every server a second time. It also keeps the
// journal from which the past of a manager that has ended can be told.
//
// The side that owns a manager:
//
//	place, err := control.LocationOf(projectDir)
//	srv, err := control.Serve(place, control.Local(m, control.LocalConfig{Project: projectDir}))
//	defer srv.Close()
//
// The side that asks:
//
//	up, err := control.Dial(ctx, place)
//	if errors.Is(err, control.ErrNotRunning) { … start a manager, and use control.Local(m, …) in the same way … }
//
// Both give a Backend, so that a command is written once.
//
// Guarantees:
//
//   - The socket has mode 0600 and stands in a directory of mode 0700 that belongs to the user. Whoever may connect is
//     the user (or root). A directory that others can write to is refused.
//   - A process that a server or a helper of this program has started is refused, and one of which nothing is known may look
//     and change nothing: package fence says how that is told, and what goes around it.
//   - A question is answered by the process that was asked and no other, and what its person allows for the session is
//     allowed to the callers of that terminal alone.
//   - At most one process serves a place at a time, also if several begin at once. What a dead one left is replaced.
//   - The bytes of a tool's result, of a resource and of a prompt reach the asking side unchanged, and so do all fields of
//     an error: outcome, class, code.
//   - Progress comes before the answer, in order. What a server asks meanwhile goes to the caller whose call it belongs to, if
//     that caller lets itself be asked; where that is not known, to the manager's own person.
//   - A call that could not be handed over is not-sent; one whose answer is lost on the socket has an unknown outcome.
//   - The journal holds no value of env or headers and no argument or result of a call. It takes 2 MiB at most.
//
// Not promised: that two versions of mcpvisor understand each other (a different protocol is refused by name), and, on
// Windows, more than what the access rules of the user's own profile directory give.
package control
