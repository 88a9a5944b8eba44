// Package subscriptions holds the standing requests of the modern era (subscriptions/listen), on which a server sends its
// notifications, and the resources that a session watches.
//
//	streams := subscriptions.Streams{Conversation: conversation}
//	stream := streams.NewStream(subscriptions.Filter{Tools: true})
//	stream.Open(true)                                  // listens until the session ends
//	err := stream.OpenAgreed(ctx, uri, true)           // the same for a watched resource, with the server's agreement
//	lost := watches.Replace(uri, uris, stream)
//
// # How it fits
//
// Package session opens a [Stream] for the changes of lists after the handshake and others for [Watches]; it gives the server's
// agreements to Acknowledge and asks OwnsNotification about each change. A Stream sends its request through [Conversation] and
// sends it again after a pause when it ended. In the legacy era there are no streams: Watches has the resources then, without
// any.
//
// # Guarantees
//
// A stream that ends is opened again with growing, random pauses, until it is stopped, the session is over, or the server has
// shown that it does not know the method. A resource that the server does not agree to watch is reported by Replace, not lost
// in silence.
//
// # Not promised
//
// That a change is announced once: a stream that was opened again may have missed some, so that everything it watches counts as
// changed then.
package subscriptions
