// Package rawjson reads and writes JSON that a stranger wrote: a server, an authorization server, a registry.
//
// encoding/json takes a name of another case for a field's, and the last of several equal names; other programs read
// such bytes differently. An attacker can use the difference: a person approves one reading, and a program acts on the
// other. This package therefore has one reading: names count as they are written, and bytes that leave a doubt are
// refused.
//
//   - [Unmarshal] fills Go values, by exact names, and refuses doubled ones.
//   - [CheckNames] refuses names that are equal or alike but for case, at every depth.
//   - [Canonical] returns the canonical form of a value, by RFC 8785, for what is compared, signed or hashed.
//   - [Object], [Array], [Text] and related functions walk over bytes without decoding or copying them.
//   - [AppendText] writes a text.
//
// # How it fits
//
// The session, the supervisor and the commands call this package for every byte that a person or a rule decides on. A
// session walks over the messages of its server with Object and Array, because most parts of a message are passed on
// unread. The package calls only the package messages, to escape names in errors, and owns no state.
//
// The functions are safe for concurrent use, and take time proportional to the bytes they are given, except for
// Canonical, which sorts.
//
// Public for every package that reads what a stranger wrote: what it exports may change without notice.
package rawjson
