// Package agents plays the agents of a gateway on a bad day: programs of both eras, on lines and over HTTP, in the name of several
// principals. It owns the gateway and its endpoint, and writes down what each agent asked and what it got.
//
//	fleet := agents.Start(agents.Options{Plan: plan, Manager: m, Record: rec.Add, Now: elapsed})
//	for _, op := range fleet.Ops() { at op.At run op.Do() in a goroutine }
//	fleet.Close()                                          // before the manager's
//
// # How it fits
//
//	sim, live ──ops at their times──▶ agent ──messages──▶ transports/serve ──▶ supervisor/gateway ──▶ the manager under test
//	                                    └──events──▶ package history ──▶ invariants I24 to I28
//
//	draw.go     what each agent does, by the seed: a pure function of the plan
//	fleet.go    the gateway, its endpoint and all agents
//	views.go    the views to which agents are held
//	crowd.go    a principal that opens more sessions than it may
//	agent.go    one agent: its sessions and its requests; perform.go its operations
//	tasks.go    the calls that become tasks; task_status.go what is said of one
//	receive.go  what comes to an agent: answers, notifications, questions
//	lines.go, http.go   how its messages travel; memory.go carries HTTP without sockets
//
// Each operation runs in the goroutine of its caller until it has its answer. An agent's reading goroutines end with its session.
//
// # Guarantees
//
// Everything that an agent sends and gets is one event each, in the order in which the agent saw it. A call of a tool is a Call and an
// End of the history as well, so that the checks of all calls judge it; its end is what stands in the answer. An agent checks nothing
// itself but what no event can hold (the bytes of a list, secrets).
package agents
