package remote

import "time"

// The bounds of the memory and the work that peers can cause here. A certificate stands for one identity, however
// many programs hold it, so the bounds of an identity hold for all of them together.
const (
	// maxHandshakes bounds the connections between their first byte and their certificate; one more is closed.
	// handshakeTime bounds the time of one handshake.
	maxHandshakes = 64
	handshakeTime = 10 * time.Second
	// maxConnections bounds the connections of one identity, maxAllConnections those of all; one more is refused.
	// Each connection has one stream.
	maxConnections    = 32
	maxAllConnections = 512
	// maxPartial bounds the bytes of frames that have begun and not ended, of all connections together. Beyond it the
	// connection that holds the most is closed.
	maxPartial = 256 << 20
	// maxCommands bounds the commands of one identity that wait for their reply, maxAllCommands those of all;
	// maxCommandBytes and maxAllCommandBytes bound their cost in bytes, where each field counts fieldCost besides its
	// own bytes. One command more is answered with a failure of ClassExhausted.
	maxCommands        = 1024
	maxAllCommands     = 4096
	maxCommandBytes    = 64 << 20
	maxAllCommandBytes = 256 << 20
	fieldCost          = 256
	// maxLongLived bounds the watches, and the actors that answer servers, of one identity; maxAllLongLived those of
	// all.
	maxLongLived    = 64
	maxAllLongLived = 1024
	// maxSubscriptions bounds the resources that one identity has subscribed to.
	maxSubscriptions = 1024
	// maxWatchers bounds the actors of one address that watch actors here; a watch beyond it is dropped.
	maxWatchers = 64
	// maxEvents is the largest queue that a peer's watch may ask for. A peer may leave so many events unread as its
	// watch asked for, besides other messages.
	maxEvents = 4096
	// keepaliveTime is the silence after which this side asks for a sign of life, on connections of either direction,
	// and keepaliveTimeout the time for the answer. A peer that is stopped, or that has vanished, loses its
	// connections and its watches after both, with the messages that waited for it.
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	// maxUnread bounds the messages, and maxUnreadBytes the bytes, that one address has not read yet. Beyond it
	// events are left out, which a gap reports before the next one, and replies are dropped and counted. A single
	// larger message may wait alone.
	maxUnread      = 8192
	maxUnreadBytes = 32 << 20
	// maxAllUnreadBytes bounds the unread bytes of all addresses.
	maxAllUnreadBytes = 256 << 20
	// maxAddress and maxID bound the two parts of an actor's name, in bytes.
	maxAddress = 300
	maxID      = 512
	// probeTime bounds the time in which an address must show its certificate.
	probeTime = 5 * time.Second
)
