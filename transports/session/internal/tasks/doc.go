// Package tasks follows the tasks that calls become: it reads their status in the form of either era, and polls a task until it
// ends.
//
//	status, problem := tasks.ReadStatus(raw)
//	answer, err := tasks.NewPoller(conversation, status, tasks.Options{Modern: true}).Run(ctx)
//
// # How it fits
//
// Package session decides whether a call asks to become a task, finds the tasks that notifications, progress and questions name,
// and cancels a task whose caller has left. A [Poller] does the rest on the caller's goroutine: it waits for the server's
// interval, gives the input that the task asks for, and gets the result. It needs the session only through [Conversation].
//
// # Guarantees
//
// Run returns the answer that the call would have had without a task, or one error. A failed poll is repeated as long as it may
// pass; every request about a task can be repeated. An error whose Task is set names a task that may still run.
//
// # Not promised
//
// That a task ends. The caller's context bounds the polling; when it ends, the session asks a server that can cancel tasks to do so,
// and does not wait for the outcome. Any other server runs the task to its end.
package tasks
