package drills

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// Options say which drills to play. Report must be set, and may be called from any goroutine.
type Options struct {
	Seed uint64
	// Count is how many of the drills are played, each at most once.
	Count  int
	Report func(Finding)
	// Progress is called before each drill and at each of its steps, with its name; nil calls nothing.
	Progress func(drill string)
}

// Finding is something that the manager or the gateway did and must not do. Invariant is the one of the harness that it violates.
type Finding struct{ Invariant, Server, Text string }

// A drill is one scene. Play calls it with a stage of its own and closes what it has opened.
type drill struct {
	name string
	play func(*stage)
}

// Play plays drills that the seed chooses. It must be called in a bubble of package testing/synctest, where no other goroutine calls
// synctest.Wait.
func Play(o Options) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0xd5111))
	for _, n := range rng.Perm(len(all))[:min(o.Count, len(all))] {
		playOne(all[n], o, rng.Uint64())
	}
}

// playOne plays one drill, with a source of chance of its own.
func playOne(d drill, o Options, seed uint64) {
	s := &stage{drill: d.name, rng: rand.New(rand.NewPCG(seed, 1)), options: o}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer s.endDrill()
	o.Progress(d.name)
	d.play(s)
}

// stage is where a drill plays: its chance, its manager and servers, and what has happened. The goroutine of the drill uses it; the methods
// that say so may be called from others.
type stage struct {
	drill   string
	rng     *rand.Rand
	options Options
	ctx     context.Context //nolint:containedctx // it is that of the drill
	cancel  context.CancelFunc
	manager *supervisor.Manager
	servers map[string]*server
	running sync.WaitGroup
	// modernAgents has the agents that join from now on speak the modern era.
	modernAgents bool
	// maxRequests bounds the requests of each agent that run at once; 0 for what the gateway has by default.
	maxRequests int
	// ends are what endDrill does first, the last of them first.
	ends []func()

	// mu guards the story, of which the last lines stand in each finding.
	mu    sync.Mutex
	story []string
}

// startManager starts the drill's manager with its servers. The servers' specs are given with SetServers.
func (s *stage) startManager(cfg supervisor.Config, servers ...*server) *supervisor.Manager {
	cfg.Logger, cfg.AuthStore = zap.NewNop(), auth.NewMemory()
	cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{}
	cfg.Wrap = func(name string, spec supervisor.Spec, t transports.Transport) transports.Transport {
		if spec.InstanceOf != "" {
			name = spec.InstanceOf
		}
		if own := s.servers[name].transport; own != nil {
			t = own()
		}
		return refusing{Transport: t, server: s.servers[name]}
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(s.rng.Uint64(), 2)).Float64
	}
	s.servers = map[string]*server{}
	for _, srv := range servers {
		s.servers[srv.name], cfg.InProcess[srv.name] = srv, srv.serveConn
	}
	m, err := supervisor.Start(s.ctx, cfg)
	if err != nil {
		s.reportFinding("I20", "", "the manager cannot be started: %v", err)
		return nil
	}
	s.manager = m
	s.ends = append(s.ends, func() {
		if err := m.Close(context.Background()); err != nil {
			s.reportFinding("I12", "", "Close ended with %v", err)
		}
	})
	return m
}

// connectServers starts a manager whose servers are connected. It returns nil if that failed, which it has reported then.
func (s *stage) connectServers(cfg supervisor.Config, servers ...*server) *supervisor.Manager {
	m := s.startManager(cfg, servers...)
	if m == nil {
		return nil
	}
	specs := map[string]supervisor.Spec{}
	for _, srv := range servers {
		specs[srv.name] = srv.spec
	}
	res, err := m.SetServers(s.ctx, specs)
	if err != nil || len(res.Errors) > 0 {
		s.reportFinding("I16", "", "the servers are refused: %v %v", res.Errors, err)
		return nil
	}
	if err := m.Ready(s.ctx); err != nil {
		s.reportFinding("I16", "", "the servers are not ready: %v", err)
		return nil
	}
	return m
}

// endDrill ends the drill and waits for its goroutines.
func (s *stage) endDrill() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
	s.cancel()
	s.running.Wait()
}

// settleAll returns when every goroutine waits for time to pass, or for the drill.
func (s *stage) settleAll() {
	s.options.Progress(s.drill)
	synctest.Wait()
}

// letPass lets time go by, and settles.
func (s *stage) letPass(d time.Duration) {
	time.Sleep(d)
	s.settleAll()
}

// runBeside runs f in a goroutine of the drill.
func (s *stage) runBeside(f func()) { s.running.Go(f) }

// isOneIn reports true with a probability of one in n.
func (s *stage) isOneIn(n int) bool { return s.rng.IntN(n) == 0 }

// drawSpan draws a time from least to most.
func (s *stage) drawSpan(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rng.Int64N(int64(most-least)+1))
}

// pickOne returns one of the values.
func pickOne[T any](s *stage, values ...T) T { return values[s.rng.IntN(len(values))] }

// addStory adds to the story. Any goroutine may call it.
func (s *stage) addStory(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

// reportFinding reports a violation, with the end of the story. Any goroutine may call it.
func (s *stage) reportFinding(invariant, server, format string, args ...any) {
	s.mu.Lock()
	story := strings.Join(s.story[max(0, len(s.story)-8):], "; ")
	s.mu.Unlock()
	text := "drill " + s.drill
	if server != "" {
		text += ", server " + server
	}
	text += ": " + fmt.Sprintf(format, args...)
	if story != "" {
		text += " (before it: " + story + ")"
	}
	s.options.Report(Finding{invariant, server, messages.Line(text, 1000)})
}

// expectEqual reports a violation unless two values are equal.
func expectEqual[T comparable](s *stage, invariant, server, what string, got, want T) bool {
	if got != want {
		s.reportFinding(invariant, server, "%s is %v, and must be %v", what, got, want)
	}
	return got == want
}
