// Package remote offers a manager to actors on other machines, over protoactor's remote.
//
//	server, err := remote.Serve(manager, remote.Config{Host: "10.0.0.5", Port: 7070, Certificate: cert, CA: pool,
//		Rights: map[string]remote.Rights{"mcpvisor://cluster/agent/*": {
//			Servers: []string{"files"}, Commands: append(remote.ReadingCommands(), "CallTool")}}})
//	…
//	peer, err := remote.Join(system, remote.Config{Certificate: cert, CA: pool})          // on the other machine
//	system.Root.RequestFuture(remote.PID("10.0.0.5:7070"), &messages.GetStatus{}, time.Second)
//
// Protoactor's remote has no authorisation of its own: any peer may send any message, also the one that stops an actor,
// to any actor that it can name. So this package reads the wire itself:
//
//   - Both sides show a certificate of the same authority (mutual TLS 1.3); without one nothing is read. Who a peer is its
//     certificate says: Identity.
//   - One actor can be named, and only commands of package messages reach it, with the identity of their stream. A command
//     needs a right: Config.Rights. A peer that no key of it means may ask nothing, and a command that the table of this
//     package does not know is refused to all. The library's reader sees the greeting of a stream, written anew, and the end
//     of an actor that this side watches; a panic there costs the stream.
//   - A peer that may use some servers is told of no others, and cannot tell one that it may not use from one that is not
//     there. It names the server that it reads from or asks for a prompt.
//   - AddServer and SetServers add servers of Config.Templates; a peer gives the name of one and the values of its
//     parameters, and neither command, argument, variable, directory, URL nor isolation of its own.
//   - A peer listens at an address whose host its certificate names (or Rights.Addresses), and the address is dialled once to
//     see that the same identity answers. Senders, watchers and ends of actors at other addresses are dropped, and a served
//     manager dials no others. All who hold an identity's certificate are one peer. The ids of calls, watches, subscriptions and the
//     questions of servers are an identity's own; a watch is its actor's own.
//   - A frame is measured before it is decoded: 131,072 fields, 8 deep. One identity has at most 32 connections, 64 watches,
//     1,024 commands that wait for their reply with 64 MiB, and 1,024 subscriptions; all of them 512, 1,024, 4,096 with
//     256 MiB. A peer's next frame is read when the last one was taken.
//   - A command or a reply that is larger than Config.MaxMessage is answered with a typed failure instead.
//   - For a peer that does not read at most 8,192 messages or 32 MiB wait, and no more events than Watch.Buffer (256 if it is 0,
//     at most 4,096). Events beyond it are left out, and a gap says how many before the next one; replies beyond it are dropped
//     and counted.
//   - A connection whose other side says nothing for 30 s is asked for a sign of life, by both sides, and ends when there is none
//     within 10 s more: a peer that is stopped or has vanished loses its watches then, with what waited for it.
//
// On the side of Join only identities that this side sent to may open a stream, and only replies, events and questions of
// servers are taken from them, for any actor of the system.
//
// Not promised: delivery. A lost connection loses messages silently, and what is sent while there is none is lost as well, or
// waits for the next attempt to connect, within the bounds above: nothing is sent again. Whoever waits for a reply needs a
// bound, and knows after it that the outcome is unknown. A call id makes it safe to ask again, for as long as package messages
// says of CallTool. An actor that watches the manager's (ctx.Watch) is told by Terminated that the connection is lost; its
// watches and its HandleRequests are over then. It sends Watch and HandleRequests again, until they are answered,
// and reads the status anew: what happened in between is told by no event and by no gap. A connection that was opened goes on when its
// certificate is revoked, until the certificate ends. A program that serves a manager cannot send to other managers with the
// same actor system. Who holds the authority's key is every peer.
//
// Only this package imports grpc: a program that does not use it does not carry it.
package remote
