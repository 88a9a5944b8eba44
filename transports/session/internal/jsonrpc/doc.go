// Package jsonrpc takes the JSON-RPC messages of a server apart and writes the pieces of ours, without decoding more than the
// session needs.
//
//	e, end := jsonrpc.ScanEnvelope(body, i, 0) // one pass; the slices of e lie inside body
//	switch e.Classify() { … }
//	b = jsonrpc.AppendString(append(b, `"uri":`...), uri)
//
// It reads a message even if the middle of it is missing ([FindAnsweredID]), the error object in any form ([ReadError]), and
// single values leniently ([TextsOf], [SizeOf]). What it appends is one line, as stdio demands.
//
// # How it fits
//
// Package session scans what its connection delivers and writes its requests with this package; so do the session's other
// parts. It stands on messages/rawjson, which walks over JSON, and knows no session, no request and no era.
//
// # Guarantees
//
// The scan makes one pass and copies nothing: an [Envelope] lies inside the message, which the caller must not write to as long as
// it uses one. Every loop is bounded by the length of the message, and nesting by a fixed depth.
//
// # Not promised
//
// The scan does not judge: a message that is valid JSON and no JSON-RPC comes out as a kind of its own, and the session decides
// what becomes of it.
package jsonrpc
