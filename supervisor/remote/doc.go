// Package remote offers a manager to actors on other machines, over protoactor's remote.
//
//	server, err := remote.Serve(manager, remote.Config{Host: "10.0.0.5", Port: 7070, Certificate: cert, CA: pool,
//		Rights: map[string]remote.Rights{"mcpvisor://cluster/agent/*": {
//			Servers: []string{"files"}, Commands: append(remote.ReadingCommands(), "CallTool")}}})
//	…
//	peer, err := remote.Join(system, remote.Config{Certificate: cert, CA: pool})          // on the other machine
//	system.Root.RequestFuture(remote.PID("10.0.0.5:7070"), &messages.GetStatus{}, time.Second)
//
// # How it fits
//
// Programs that embed a supervisor.Manager call [Serve], programs on other machines call [Join]; no other package of
// this module does. The package calls protoactor's remote for connections and the manager's actor for commands. It
// owns the listening socket, the table of commands that peers may send (messageRules), and the bookkeeping about
// every peer: its addresses, its open commands, its unread messages. The manager does not know that there are peers:
// it sees commands from relays.
//
//	peer ─TLS─► peerTransport ─ peerCommand ─► peerAuthorizer ─ spawns ─► relay ──► manager
//	             measures, decodes              checks Rights               │
//	peer ◄─────── sendLimiter ◄───────── replies and events, checked ◄──────┘
//
// Protoactor's remote has no authorisation of its own: any peer may send any message, also the one that stops an
// actor, to any actor that it can name. So this package reads and checks every frame itself before the library sees
// it.
//
// # Guarantees
//
//   - Both sides show a certificate of the same authority (mutual TLS 1.3); without one nothing is read. The
//     certificate decides the identity of a peer: [Identity].
//   - Peers can name one actor, and only commands of package messages reach it, with the identity of their stream.
//     A command needs a right: Config.Rights. A peer without a matching key has no rights, and a command that the
//     table of this package does not know is refused to all. The library's reader sees the greeting of a stream,
//     written anew, and the end of an actor that this side watches; a panic there costs the stream.
//   - A peer with rights to some servers learns of no others, and cannot tell a server that it may not use from one
//     that does not exist. It must name the server that it reads from or asks for a prompt.
//   - AddServer and SetServers add servers of Config.Templates; a peer gives the name of a template and the values
//     of its parameters, and neither command, argument, variable, directory, URL nor isolation of its own.
//   - A peer listens at an address whose host its certificate names (or Rights.Addresses), and this side dials the
//     address once to see that the same identity answers. Senders, watchers and ends of actors at other addresses
//     are dropped, and a served manager dials no others. All programs with a certificate of one identity are one
//     peer. The ids of calls, watches, subscriptions and the questions of servers belong to one identity; a watch
//     belongs to one actor.
//   - The caller of a command begins with the peer's identity, so that a server with share "principal" has instances for each
//     peer. Subscriptions are on the server's own connection, which the peers share.
//   - A subscription counts when the server has agreed to it. It ends when the identity unsubscribes, or has no
//     connection left: the server is then asked to announce the resource no more, unless another peer has it too.
//   - A frame is measured before it is decoded: 131,072 fields, 8 deep. One identity has at most 32 connections, 64
//     watches, 1,024 commands that wait for their reply with 64 MiB, and 1,024 subscriptions; all of them together
//     512, 1,024, 4,096 with 256 MiB. A peer's next frame is read when the peerAuthorizer has taken the last one.
//   - Who watches [PID] gets Terminated when the manager has ended, when its Server is closed, and when the connection is lost. Every
//     command after the manager's end, for which its peer has the right, is refused as closed.
//   - A command or a reply that is larger than Config.MaxMessage is answered with a typed failure instead.
//   - For a peer that does not read at most 8,192 messages or 32 MiB wait, and no more events than Watch.Buffer
//     (256 if it is 0, at most 4,096). Events beyond it are left out, and a gap gives their number before the next
//     one; replies beyond it are dropped and counted.
//   - Both sides ask for a sign of life on a connection that was silent for 30 s, and close it if there is none
//     within 10 s more: a peer that is stopped or has vanished loses its watches then, with the messages that
//     waited for it.
//
// On the side of Join only identities that this side has sent to may open a stream, and only replies, events and
// questions of servers are taken from them, for any actor of the system.
//
// # Not promised
//
// Delivery. A lost connection loses messages silently, and a message that is sent while there is no connection is
// lost as well, or waits for the next attempt to connect, within the bounds above: nothing is sent again. A sender
// that waits for a reply needs a bound, and must take the outcome for unknown after it. A call id makes it safe to
// ask again, for as long as package messages says at CallTool. An actor that watches the manager's (ctx.Watch) gets
// Terminated when the connection is lost; its watches, its HandleRequests and its subscriptions are over then. It
// must send Watch, HandleRequests and SubscribeResource again, until they are answered, and read the status and its
// resources anew: no event and no gap tells what happened in between. An open connection goes on when its certificate
// is revoked, until the certificate ends. A program that serves a manager cannot send to other managers with the same
// actor system. The owner of the authority's key can be any peer.
//
// Only this package imports grpc, so a program that does not import it does not carry grpc.
package remote
