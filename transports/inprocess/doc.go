// Package inprocess connects to servers of the same program. A function serves each connection and speaks with it through a [Peer];
// packages mcpgo and gosdk make such functions from servers that are written with an SDK.
//
//	t := inprocess.New(func(ctx context.Context, peer inprocess.Peer) error { … })
//	conn, err := t.Dial(ctx, sink)
//
// # How it fits
//
//	Send ──> messageQueue ──> Peer.Read, or DirectPeer's functions on goroutines of the connection ──> server
//	Sink <──────────────────── Peer.Write <──┘
//
// # Guarantees
//
// Those of package transports, and further: messages to the server keep their order, and a panic of the server's function ends its
// connection and not the program.
//
// Not promised: that a function which ignores the end of its context ends; code of the same program cannot be killed.
package inprocess
