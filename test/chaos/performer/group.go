package performer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Options hold the settings of [Open] beside the plan. Record and Now are needed; both are called by several goroutines.
type Options struct {
	// Record takes an event of a server. Its time is 0: the recorder takes the time.
	Record func(history.Event)
	// Now returns the time since the start of the run.
	Now func() time.Duration
	// Machine makes the servers; nil means peer.New.
	Machine func(peer.Config) peer.Machine
	// Memory keeps everything in this process, without processes and sockets, so that a bubble of testing/synctest can hold the
	// group: servers over stdio are reached by Server.OpenStream, those over HTTP with Server.HTTPClient.
	Memory bool
	// Program is the path of the program that becomes a peer when it is started with the arguments that [Main] knows; empty
	// means this program.
	Program string
	// Secret makes the secret that a server is reached with, and that the fault leak-canary makes it reveal; nil makes none.
	Secret func() string
	// Front stands in front of a server behind a socket and may answer requests itself; nil means that nothing does.
	Front func(http.Handler) http.Handler
}

// Group holds the servers of one plan, and what they share.
type Group struct {
	plan    scenario.Plan
	options Options

	children    *childListener
	descriptors *descriptorLimit
	// folder holds the links of programs that a fault removes; empty if the plan has no such fault.
	folder  string
	servers map[string]*Server
}

// Open makes the servers of a plan, healthy and ready for connections. Without an error the caller must close the group.
func Open(plan scenario.Plan, o Options) (_ *Group, err error) {
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("this program does not know its own path: %w", err)
		}
	}
	if o.Machine == nil {
		o.Machine = peer.New
	}
	g := &Group{plan: plan, options: o, descriptors: &descriptorLimit{}, servers: map[string]*Server{}}
	if !o.Memory {
		if g.children, err = openChildListener(); err != nil {
			return nil, err
		}
	}
	defer func() {
		// Close copes with a group of which only a part is open.
		if err != nil {
			g.Close()
		}
	}()
	if !o.Memory && slices.ContainsFunc(plan.Faults, func(f scenario.PlannedFault) bool { return f.Fault == faultMissingBinary }) {
		if g.folder, err = os.MkdirTemp("", "mcpvisor-chaos-"); err != nil {
			return nil, fmt.Errorf("no folder can be made for the run: %w", err)
		}
	}
	for _, srv := range plan.Servers {
		if g.servers[srv.Name], err = g.newServer(srv); err != nil {
			delete(g.servers, srv.Name)
			return nil, err
		}
	}
	if g.children != nil {
		g.children.acceptChildren(g.servers)
	}
	return g, nil
}

// newServer makes a server with its endpoint.
func (g *Group) newServer(srv scenario.Server) (s *Server, err error) {
	secret, canaries := "", []string(nil)
	if g.options.Secret != nil {
		secret = g.options.Secret()
		canaries = []string{secret}
	}
	s = &Server{
		name: srv.Name, plan: srv, record: g.options.Record, now: g.options.Now,
		conns: map[int]serverConn{}, openRequests: map[int]map[string]openRequest{},
		machine: g.options.Machine(peer.Config{Server: srv, Seed: seedOf(g.plan.Seed, srv.Name), Canaries: canaries}),
	}
	switch srv.Kind {
	case messages.Stdio:
		if g.options.Memory {
			s.endpoint = &memoryEndpoint{}
			break
		}
		s.endpoint, err = g.newStdioEndpoint(srv.Name, secret)
	case messages.HTTP, messages.SSE, messages.WebSocket:
		s.endpoint, err = g.newWebEndpoint(s, secret)
	default:
		err = fmt.Errorf("the server %s is of the kind %s, which has no process and no socket; run this scenario in the simulation",
			srv.Name, srv.Kind)
	}
	return s, err
}

// newStdioEndpoint makes the endpoint of a stdio server. Its environment holds a secret, as the environment of most servers
// does. Only a server whose program a fault removes gets a link of its own.
func (g *Group) newStdioEndpoint(name, secret string) (*stdioEndpoint, error) {
	folder := ""
	for _, f := range g.plan.Faults {
		if f.Server == name && f.Fault == faultMissingBinary {
			folder = g.folder
		}
	}
	h, err := newStdioEndpoint(folder, g.options.Program, name, messages.Spec{
		Type: messages.Stdio, Args: childArguments(becomePeer, g.children.address, name),
		Env: map[string]string{
			keyVariable: g.children.key, "CHAOS_API_TOKEN": secret,
			// A peer only passes bytes on, so one processor suffices; five hundred peers may share two.
			"GOMAXPROCS": "1", "GORACE": "atexit_sleep_ms=0",
		},
	}, g.descriptors)
	if err != nil {
		return nil, fmt.Errorf("the link to the program of %s cannot be made: %w", name, err)
	}
	return h, nil
}

// seedOf derives the seed of one server from the run's seed.
func seedOf(seed uint64, server string) uint64 {
	h := sha256.New()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	h.Write([]byte("peer\x00" + server))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// Server returns the server with a name, nil if the plan has none.
func (g *Group) Server(name string) *Server { return g.servers[name] }

// Mark returns a text that stands in the arguments of every process of the group.
func (g *Group) Mark() string {
	if g.children == nil {
		return ""
	}
	return g.children.address
}

// Begin begins a fault on its server, or on every server if it names none.
func (g *Group) Begin(f scenario.PlannedFault) {
	for _, s := range g.concernedServers(f) {
		s.askMachine(func(now time.Duration) []peer.Action { return s.machine.Begin(now, f) })
		s.setObstacle(f, true)
	}
}

// End ends a fault. The obstacle goes first, so that dials reach the machine when it ends the fault.
func (g *Group) End(f scenario.PlannedFault) {
	for _, s := range g.concernedServers(f) {
		s.setObstacle(f, false)
		s.askMachine(func(now time.Duration) []peer.Action { return s.machine.End(now, f) })
	}
}

// concernedServers returns the servers that a fault strikes, in the order of the plan.
func (g *Group) concernedServers(f scenario.PlannedFault) (all []*Server) {
	for _, srv := range g.plan.Servers {
		if f.Server == "" || f.Server == srv.Name {
			all = append(all, g.servers[srv.Name])
		}
	}
	return all
}

// EndEscaped ends the processes that have left the process group of their server. The client cannot reach them.
func (g *Group) EndEscaped() {
	if g.children != nil {
		g.children.endEscaped()
	}
}

// ReleaseEnded releases the connections that have ended, and returns how many have not: a client over HTTP need not announce
// an end.
func (g *Group) ReleaseEnded() (open int) {
	for _, s := range g.servers {
		open += s.releaseEnded()
	}
	return open
}

// Close closes the servers, the control connections of their processes and with them the processes, and restores what faults
// have changed. It may be called twice.
func (g *Group) Close() {
	for _, s := range g.servers {
		s.close()
	}
	// Who keeps the group keeps no machine with it: a run measures what is left of it.
	g.servers = nil
	if g.children != nil {
		g.children.close()
		g.children.servers = nil
	}
	g.descriptors.resetLimit()
	if g.folder != "" {
		_ = os.RemoveAll(g.folder)
	}
}
