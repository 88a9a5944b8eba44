// Package audit keeps the record of what was done with MCP servers: one JSON line for each call, each read of a
// resource or a prompt, each answer of a person, each change of a server's phase, of the configuration and of what is approved.
//
// Give the manager a writer, and it writes there:
//
//	m, err := supervisor.Start(ctx, supervisor.Config{Audit: &audit.File{Path: "/var/log/agent/audit.jsonl"}})
//
// Any io.Writer will do: it gets one or several whole lines at a time, from one goroutine. File appends them to a file, and
// puts it aside when it is large. ReadFiles and Read read them back.
//
// # What is guaranteed
//
//   - No call waits for the writer. Log.Add encodes, takes a lock that is never held while anything is written, and returns.
//     A writer that is slow, fails, never returns or panics costs records and no call.
//   - Nothing is lost silently. Each record of a run has a number, Seq, that rises by one, also if it is not written. Where
//     records are missing stands a record of kind lost that says how many of what kind, from which number to which, and over
//     which time. Log.Stats has the same numbers: what was added is written, waits, or is lost.
//   - What waits is bounded (Options.MaxRecords and MaxBytes). When it is full the newest record is the one that is lost: the
//     beginning of a trouble explains more than its end, and no flood can push out of the record what stands in it already.
//     Calls, reads and phases get seven eighths of the room: approvals, answers and changes are rare, and count for more.
//   - A writer that failed is tried again after 100 ms, then after twice as long each time, at most 5 s, with what it did not
//     take. A line that it took a part of is written again, on a new line. One that panicked may have taken what it is given
//     again: Run and Seq tell which lines are the same.
//   - A torn line spoils no other: a reader leaves it out, and counts it.
//   - Several processes may write one File. They take turns (a lock on a file beside it), so that no line is torn by another
//     and no file put aside that another process still writes.
//   - No secret that a server was given stands in a record: see Arguments for what calls bring.
//
// # What is not promised
//
// A record is in the file some 10 ms after it happened, and what has not been written by then dies with a process that is
// killed. What was written survives that, and a crash of the machine only with File.Sync. Whoever may write the file may
// change it: send the lines elsewhere if that matters. A hash of arguments that can be guessed can be checked by guessing.
package audit
