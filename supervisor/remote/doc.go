// Package remote offers a manager to actors on other machines, over protoactor's remote.
//
//	server, err := remote.Serve(manager, remote.Config{Host: "10.0.0.5", Port: 7070, Certificate: cert, CA: pool,
//		AllowCommands: []string{"npx"}})
//	…
//	peer, err := remote.Join(system, remote.Config{Certificate: cert, CA: pool})          // on the other machine
//	system.Root.RequestFuture(remote.PID("10.0.0.5:7070"), &messages.GetStatus{}, time.Second)
//
// Protoactor's remote has no authorisation of its own: any peer may send any message, also the one that stops an actor,
// to any actor that it can name. So this package stands in the way of the wire:
//
//   - both sides show a certificate of the same authority (mutual TLS 1.3); without one nothing is read;
//   - one actor can be named, and only the commands of package messages reach it; everything else is dropped and counted;
//   - AddServer and SetServers run only the commands in Config.AllowCommands, and reach only the hosts in
//     Config.AllowHosts; "trusted" and "inheritEnv" of a spec that came from afar are refused;
//   - a command or a reply that is larger than Config.MaxMessage is answered with a typed failure instead.
//
// Not promised: delivery. A lost connection loses messages silently; whoever waits for a reply needs a bound, and knows
// after it that the outcome is unknown. A call id makes it safe to ask again.
//
// Only this package imports grpc: a program that does not use it does not carry it.
package remote
