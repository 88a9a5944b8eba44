// Package rawjson reads and writes JSON that a stranger wrote: a server, an authorization server, a registry.
//
// encoding/json takes a name of another case for a field's, and the last of several equal names; other programs read such
// bytes otherwise. A person who decides on one reading and a program that gets the other are deceived, so this package has
// one reading: names count as they are written, and where that leaves a doubt the bytes are refused.
//
//   - [Unmarshal] fills Go values, by exact names, and refuses doubled ones.
//   - [CheckNames] refuses names that are equal or alike but for case, whatever they stand for.
//   - [Canonical] is the one form of a value, by RFC 8785, for what is compared, signed or hashed.
//   - [Object], [Array], [Text] and their like walk over bytes without decoding or copying them.
//   - [AppendText] writes a text.
//
// The functions are safe for concurrent use, keep no state, and take time proportional to the bytes they are given, but for
// Canonical, which sorts.
package rawjson
