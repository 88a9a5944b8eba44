// Package messages is the vocabulary that every part of mcpvisor shares: the words for a server's phase, the description
// of a server (Spec), what is published about it (Status), the one error type with its outcomes, tool names, events,
// and the protobuf commands and replies that other actors send and receive.
//
// A Go program uses the plain Go types ([Spec], [Status], [Tool], [Error], [Event]). Between actors, on one machine or several, the
// protobuf types in messages.pb.go travel; convert.go is the only place that turns one into the other.
//
// The package imports nothing else of this module and no actor library, so that a program that only sends messages
// depends on nothing but protobuf.
package messages
