// Package plan decides which configuration should be in force when files have changed. It is pure: the files' contents, the
// time, and the parser are arguments; package supervisor/internal/reload reads, waits and applies.
//
//	tracker := plan.New(rules, files, approve)             // what the manager was started with
//	tracker, changed := tracker.Observe(now, files)       // after each reading
//	at, due := tracker.Due()                              // when to decide
//	tracker, decision := tracker.Decide(now, approve)     // what should be in force
//
// A Tracker is a value: no method changes the one that it is called on, so that a decision which cannot be applied is simply dropped.
//
// What counts of a file:
//
//   - A file that can be read and parsed counts as it is, from the first reading that saw it so. If it cannot be parsed
//     a moment later, the last reading that could be still counts: the last valid content that was seen is applied.
//
//   - A file that is broken (no JSON, no object, unreadable) changes nothing, for as long as it is. It is reported when it has
//     been so for Grace: before that it may be half-written. One that was broken when the manager was started counts as it
//     did then, and one that appears broken does not count until it can be parsed, a managed file included.
//
//   - A file that is missing still counts for Grace, so that a program which removes it and writes it anew ends no server.
//     Then its servers are gone, and an entry of a lower scope that it hid is in force.
//
//   - An entry that cannot be used, or that is not approved in its present form, ends no running server: the server keeps
//     its last spec, with a remark that says why, as long as a file that this spec is from still has an entry of that name and
//     is no less exclusive than the new one. The entry is applied when it can be used, or is approved. "disabled": true of such
//     an entry counts. An entry that could never be used makes its server fail, as at the start.
//
//   - "audit" and "samplingCommand" beside the servers are not applied while the program runs. While they differ from the
//     beginning, Decision.Restart names them. "registry" is read by the commands that use it.
//
// A decision is due once the files have been quiet for Quiet, at the latest Most after the first change that is not decided
// about. A write that does not change the content of a file is no change.
//
// Not promised: that a content is applied which exists for less time than a reading takes; and that two files which
// change together are applied together, unless they do so within Quiet.
package plan
