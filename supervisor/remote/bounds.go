package remote

import "time"

// What strangers can make this process hold is bounded here. A certificate is an identity, however many hold it.
const (
	// maxHandshakes is how many connections may be between their first byte and their certificate; handshakeTime is how
	// long one may be.
	maxHandshakes = 64
	handshakeTime = 10 * time.Second
	// maxConnections bounds the connections of one identity, maxAllConnections those of all. Each has one stream.
	maxConnections    = 32
	maxAllConnections = 512
	// maxPartial bounds the bytes of frames that have begun and not ended, of all connections together. Beyond it the
	// connection that holds the most is cut.
	maxPartial = 256 << 20
	// maxCommands bounds the commands of one identity that wait for their reply, maxAllCommands those of all; maxCommandBytes and
	// maxAllCommandBytes bound what they cost, in bytes, where each field counts as fieldCost.
	maxCommands        = 1024
	maxAllCommands     = 4096
	maxCommandBytes    = 64 << 20
	maxAllCommandBytes = 256 << 20
	fieldCost          = 256
	// maxLongLived bounds the watches, and the actors that answer servers, of one identity; maxAllLongLived those of all.
	maxLongLived    = 64
	maxAllLongLived = 1024
	// maxSubscriptions bounds the resources that one identity has subscribed to.
	maxSubscriptions = 1024
	// maxWatchers bounds the actors of one address that are told when an actor here ends.
	maxWatchers = 64
	// maxEvents is the largest queue that a peer's watch may ask for. As many events may wait for the peer to read them as its
	// watch asked for, whatever else may.
	maxEvents = 4096
	// keepaliveTime is how long the other side of a connection may say nothing before it is asked for a sign of life, whichever side
	// has dialled, and keepaliveTimeout how long that may take: a peer that is stopped, or that has vanished, loses its connections
	// and its watches after both, with what waited for it.
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	// maxUnread bounds the messages, and maxUnreadBytes the bytes, that wait for one address to read them. Beyond it events
	// are left out, which a gap tells before the next one, and replies are dropped and counted. A single larger message may
	// wait alone.
	maxUnread      = 8192
	maxUnreadBytes = 32 << 20
	// maxAllUnreadBytes bounds the bytes that wait for all addresses.
	maxAllUnreadBytes = 256 << 20
	// maxAddress and maxID bound the two parts of an actor's name, in bytes.
	maxAddress = 300
	maxID      = 512
	// probeTime is how long an address has to show its certificate.
	probeTime = 5 * time.Second
)
