// Package messages is the vocabulary that every part of mcpvisor shares: the words for a server's phase, the
// description of a server ([Spec]), the published state of it ([Status]), the one error type with its outcomes, tool
// names, events, and the protobuf commands and replies that other actors send and receive.
//
// # How it fits
//
// Every other package imports this one. A Go program uses the plain Go types ([Spec], [Status], [Tool], [Error],
// [Event]). Between actors, on one machine or several, the protobuf types in messages.pb.go travel; the files
// convert*.go are the only place that turns one into the other. The types are values or immutable, and the package owns no state.
//
// The package imports no other package of this module and no actor library, so that a program that only sends messages
// depends on protobuf alone.
package messages
