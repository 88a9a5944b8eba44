// Package conntest has what the tests of several kinds of transports need: a client that looks at every error for secrets, the
// servers that the suite of package transporttest talks to, and servers that do what a real one would not. Only tests import it.
//
// # How it fits
//
// A test of one kind opens its transport with [Dial], against [Serve] or one of the peers, and looks at what the [Client] got:
//
//	test ── Dial ──> Transport under test ──> WebPeer, SocketPeer, StartTCPServer
//	  └── Call, TrySend, WaitFor ── Client <── Sink
//
// Every [Client] carries the [Canary] in each place of its configuration that can hold a secret, and fails its test if an error
// shows it. Everything that must end has [Bound], 15 s, so that a hang fails the test that caused it and not the whole run.
// Servers listen on loopback only and end with their test.
package conntest
