// Package audit keeps the record of what was done with MCP servers: one JSON line for each call, each read of a
// resource or a prompt, each answer of a person, each change of a server's phase, of the configuration and of approvals.
//
// Give the manager a writer, and it writes there:
//
//	m, err := supervisor.Start(ctx, supervisor.Config{Audit: &audit.File{Path: "/var/log/agent/audit.jsonl"}})
//
// Any io.Writer will do: it gets one or several whole lines at a time, from one goroutine. File appends them to a file, and
// rotates it when it is large. ReadFiles and Read read them back.
//
// # How it fits
//
// Package supervisor/internal/auditor makes a Log and adds a Record from each call, answer and command. The Log owns the queue
// and the goroutine that writes; the writer belongs to the program.
//
//	calls, actors ── Add ──▶ queue (bounded) ── writeLoop ──▶ io.Writer (File)
//
// # What is guaranteed
//
//   - No call waits for the writer. Log.Add encodes, takes a lock that is never held while a line is written, and returns.
//     A writer that is slow, fails, never returns or panics costs records and no call.
//   - No record is lost silently. Each record of a run has a number, Seq, that rises by one, also if it is not written. Where
//     records are missing there is a record of kind lost that says how many of what kind, from which number to which, and over
//     which time. Log.Stats has the same numbers: each added record is written, waits, or is lost.
//   - The queue is bounded (Options.MaxRecords and MaxBytes). When it is full the newest record is lost: the
//     beginning of a failure explains more than its end, and no flood can push out what is queued already.
//     Calls, reads and phases get seven eighths of the room: approvals, answers and changes are rare, and matter more.
//   - A writer that failed is tried again after 100 ms, then after twice as long each time, at most 5 s, with what it did not
//     take. A line of which it took a part is written again, on a new line. One that panicked may have taken lines that it
//     gets again: Run and Seq show which lines are the same.
//   - A torn line spoils no other: a reader leaves it out, and counts it.
//   - Several processes may write one File. They take turns (a lock on a file beside it), so that no line is torn by another
//     and no file is rotated that another process still writes.
//   - No secret that a server was given is in a record: see Arguments for the content of calls.
//
// # What is not promised
//
// A record is in the file some 10 ms after it happened, and records that are not written by then are lost with a process that is
// killed. Written ones survive that, but a crash of the machine only with File.Sync. A user who may write the file may also
// change it: send the lines elsewhere if that matters. If arguments can be guessed, a guess can be checked against their hash.
package audit
