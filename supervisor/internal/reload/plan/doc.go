// Package plan decides what a manager should run when its configuration files have changed. It is pure: what was read, the
// time, and how a file is parsed are passed in; package supervisor/internal/reload reads, waits and applies.
//
//	book := plan.New(rules, firstReading)        // what the manager was started with
//	book, news := book.Observe(now, reading)         // as often as the files are looked at
//	at, due := book.Due()                        // when something is to be decided
//	book, decision := book.Decide(now, approve)  // what is to be in force
//
// A Book is a value: no method changes the one that it is called on.
//
// What counts of a file:
//
//   - A file that can be read and parsed counts as it is, from the first moment at which it was seen so. If it cannot be parsed
//     a moment later, the last reading that could be counts on: the last valid content that was seen is what is applied.
//
//   - A file that is broken (no JSON, no object, unreadable) changes nothing, for as long as it is. It is reported when it has
//     been so for Grace: before that it may be half-written. One that was broken when the manager was started counts as it
//     did then, and one that appears broken does not count until it can be parsed, a managed file included.
//
//   - A file that is missing counts on for Grace, so that a program that removes it and writes it anew costs nobody anything.
//     Then its servers are gone, and an entry of a lower scope that it hid is in force.
//
//   - An entry that cannot be used, or that is not approved as it stands now, costs nothing that runs: the server goes on under
//     its last spec, with a remark that says why, as long as a file that this spec is from still has an entry of that name and
//     is no less exclusive than the new one. It is applied when it can be used, or is approved. "disabled": true of such an
//     entry counts. An entry that could never be used is the server's failure, as at the start.
//
//   - "audit" and "samplingCommand" beside the servers are not applied to what runs. While they say something else than in the
//     beginning, Decision.Restart names them. "registry" is read by the commands that use it.
//
// When it is decided: once the files have been quiet for Quiet, at the latest Most after the first change that was not decided
// about. What does not change the content of a file is no change.
//
// Not promised: that a content is applied which stood for less time than it takes to be read; and that two files which
// change together are applied together, unless they do so within Quiet.
package plan
