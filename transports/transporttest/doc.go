// Package transporttest is the contract that every transport passes, as a test suite, and the scripted peer that the suite talks
// to.
//
// A kind of transport joins with one test:
//
//	func TestHTTPContract(t *testing.T) { transporttest.Run(t, transporttest.Harness{New: …}) }
//
// [Harness].New starts a peer and returns the transport that reaches it. The peer is a [Script], which knows the commands (echo,
// big, silent, die, …), behind a [Port], which knows the kind: how to write a message, how to die. A peer with one stream of
// messages runs Script.Serve; a peer with one exchange per request (HTTP) calls Script.Play for each.
//
//	suite ── Send ──> transport under test ── the kind's frames ──> peer: Port and Script
//	  ^                    │                                            │
//	  └── Recorder <───────┘ Sink <─────── answers, notes, noise ───────┘
//
// # A new kind
//
// The test of a new kind writes a peer, and says what the kind can do:
//
//	func TestQUICContract(t *testing.T) {
//		transporttest.Run(t, transporttest.Harness{
//			New: func(t *testing.T, o transporttest.Options) transports.Transport {
//				peer := startPeer(t)                          // ends with t.Cleanup
//				go script.Serve(t.Context(), peer, peer.next) // peer implements Port; again for each Dial, one at a time
//				return NewQUIC(peer.address, o.Secret, o.MaxMessage)
//			},
//			Broken:   map[string]func(…) …{"no address": …}, // configurations that cannot connect
//			Features: transporttest.Features{OneStream: true, DeathIsDown: true, Push: true},
//		})
//	}
//
// A feature that is left out by mistake only leaves its tests out; one that is claimed by mistake fails them.
//
// # The groups of tests
//
//   - delivery.go: messages arrive byte for byte, once, and with the Delivery that Send has reported.
//   - limits.go: the size of messages, noise, answers that come late or never, and peers that do not read.
//   - both_ways.go: requests of the peer, cancellation in both eras.
//   - connection_end.go: the peer's death, Close, and the context of Dial.
//
// Whatever a test does, at its end conn.closeAndCheck checks what holds for every connection: one Down with an error of the right
// type, Released, no secret in any error, and that a later Send is refused. A race between two goroutines of a transport shows
// as a failure in some runs; run the suite with the race detector and -count to meet it.
//
// # How it fits
//
// The tests of each kind of transport, and of transports/fault for what it wraps, call [Run]. The suite uses only the interfaces of
// package transports, so that a new kind needs no change here. Each test owns its peer, its connections and its Recorder, and
// ends them by t.Cleanup.
//
// The suite checks the guarantees of package transports and nothing else, so that a test that fails names the sentence that does
// not hold. It measures no speed: every bound is Harness.Bound, which is generous.
//
// The suite compares the goroutines before and after each test. Goroutines of tests that run at the same time (t.Parallel) would
// count as leaks of the suite: do not run such tests beside it.
package transporttest
