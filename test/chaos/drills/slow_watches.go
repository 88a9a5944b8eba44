package drills

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// standingWatches holds which resources each agent wants to watch. The drill writes it, and the goroutines of the server read it when the gateway asks
// to end a watch.
type standingWatches struct {
	mu sync.Mutex
	// isExact says that the gateway knows of a wish in the instant in which the agent has it, and that no request about another resource is
	// under way, for which the server's session lets one about this wait.
	isExact bool
	watched [3]map[string]bool
}

func (w *standingWatches) setWatch(agent int, uri string, watches bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[agent] == nil {
		w.watched[agent] = map[string]bool{}
	}
	w.watched[agent][uri] = watches
}

func (w *standingWatches) forgetAgent(agents ...int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, agent := range agents {
		w.watched[agent] = nil
	}
}

// checkUnwatched judges that a server is not asked to end what an agent watches: the updates until it is asked anew would reach no agent.
func checkUnwatched(s *stage, m message, w *standingWatches) {
	var p struct{ URI string }
	_ = json.Unmarshal(m.Params, &p)
	w.mu.Lock()
	defer w.mu.Unlock()
	for agent, uris := range w.watched {
		if w.isExact && uris[p.URI] {
			s.reportFinding("I24", "files", "it was asked to tell no more of %s, which agent %d watches", p.URI, agent)
			return
		}
	}
}

// playSlowWatches lets agents begin and end watches, and go, without waiting for the answers of a slow server. When it has answered everything, each
// agent gets the updates of what it asked to watch last, and the server was asked for no more than that.
func playSlowWatches(s *stage) {
	files := newServer("files", "read")
	for _, uri := range watchedURIs {
		files.offers["resources"] = append(files.offers["resources"], map[string]any{"name": uri, "uri": uri})
	}
	latency, listLatency := s.drawSpan(0, time.Second), time.Duration(0)
	if s.isOneIn(2) {
		listLatency = s.drawSpan(0, 3*time.Second)
	}
	mute := s.isOneIn(4) // the server does not answer who ends a watch, and the gateway gives up
	uris := watchedURIs[:1+s.rng.IntN(2)]
	if mute {
		uris = uris[:1] // who ends several watches at once waits for the server with each, and the time for all is one
	}
	standing := &standingWatches{isExact: listLatency == 0 && len(uris) == 1}
	files.instead = func(c *conn, m message) bool {
		delay := time.Duration(0)
		switch m.Method {
		case "resources/unsubscribe":
			checkUnwatched(s, m, standing)
			if mute {
				return true
			}
			delay = latency
		case "resources/subscribe":
			delay = latency
		case "resources/list":
			delay = listLatency
		default:
			return false
		}
		c.work.Go(func() {
			time.Sleep(delay)
			c.answerMessage(m, "")
		})
		return true
	}
	if s.connectServers(supervisor.Config{}, files) == nil {
		return
	}
	g := s.openGateway(gateway.Config{})
	defer standing.forgetAgent(0, 1, 2) // the gateway ends the watches when it is closed
	agents, watched := make([]*agent, 1+s.rng.IntN(3)), make([]map[string]bool, 3)
	s.addStory("the server needs %s for each watch, and %s for its list (never says that one has ended: %t)", latency, listLatency, mute)
	for range 4 + s.rng.IntN(10) {
		i, uri := s.rng.IntN(len(agents)), pickOne(s, uris...)
		switch a := agents[i]; {
		case a == nil:
			agents[i], watched[i] = s.joinAgent(g, serve.Principal{Name: pickOne(s, "anna", "ben")}, serve.Path{}, nil), map[string]bool{}
		case s.isOneIn(6):
			s.addStory("agent %d goes", i)
			_ = a.out.Close()
			standing.forgetAgent(i)
			agents[i], watched[i] = nil, nil
		default:
			method := "resources/subscribe"
			if watched[i][uri] = !watched[i][uri]; !watched[i][uri] {
				method = "resources/unsubscribe"
			}
			standing.setWatch(i, uri, watched[i][uri])
			s.addStory("agent %d: %s %s", i, method, uri)
			s.runBeside(func() {
				if _, err := a.callMethod(s.ctx, method, map[string]any{"uri": uri}); err != nil && s.ctx.Err() == nil {
					s.reportFinding("I24", "files", "%s of %s ended with %v", method, uri, err)
				}
			})
		}
		pause := s.drawSpan(time.Millisecond, pickOne(s, 10*time.Millisecond, 2*time.Second))
		if mute {
			pause += 12 * time.Second
		}
		s.letPass(pause)
	}
	s.letPass(time.Minute)
	if !checkSubscribed(s, files, watched[:len(agents)]) {
		return
	}
	for _, uri := range uris {
		if !checkTold(s, files, uri, agents, watched[:len(agents)]) {
			return
		}
	}
}
