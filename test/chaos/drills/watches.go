package drills

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// watchedURIs are the resources of the drill's server: a file, a directory with and without a slash at its end, and what is in it or beside it.
var watchedURIs = []string{"drill://files/one", "drill://files/dir", "drill://files/dir/", "drill://files/dir/two", "drill://files/directory"}

// playWatches lets agents watch resources and end that, and compares what they are told of, and what the server is asked for, with that.
func playWatches(s *stage) {
	files := newServer("files", "read")
	for _, uri := range watchedURIs {
		files.offers["resources"] = append(files.offers["resources"], map[string]any{"name": uri, "uri": uri})
	}
	if s.connectServers(supervisor.Config{}, files) == nil {
		return
	}
	g := s.openGateway(gateway.Config{})
	agents := make([]*agent, 1+s.rng.IntN(3))
	watched := make([]map[string]bool, len(agents))
	ends := make([]map[string]func(), len(agents)) // what agents of the modern era listen to
	for i := range agents {
		s.modernAgents, ends[i] = s.isOneIn(2), map[string]func(){}
		agents[i], watched[i] = s.joinAgent(g, serve.Principal{Name: pickOne(s, "anna", "ben")}, serve.Path{}, nil), map[string]bool{}
	}
	for range 12 + s.rng.IntN(12) {
		i, uri := s.rng.IntN(len(agents)), pickOne(s, watchedURIs...)
		switch n := s.rng.IntN(5); {
		case agents[i] == nil:
		case n == 0 && s.isOneIn(4):
			_ = agents[i].out.Close()
			agents[i], watched[i] = nil, nil
			s.addStory("agent %d goes", i)
		case n < 3:
			method := "resources/subscribe"
			if watched[i][uri] = n < 2; n == 2 {
				method = "resources/unsubscribe"
			}
			s.addStory("agent %d (modern: %t): %s %s", i, agents[i].modern, method, uri)
			if agents[i].modern {
				if end := ends[i][uri]; end != nil {
					end()
					delete(ends[i], uri)
				}
				if watched[i][uri] {
					ends[i][uri] = agents[i].listenFor(s, map[string]any{"resourceSubscriptions": []string{uri}})
				}
				break
			}
			if _, err := agents[i].callMethod(s.ctx, method, map[string]any{"uri": uri}); err != nil {
				s.reportFinding("I24", "files", "%s of %s ended with %v", method, uri, err)
				return
			}
		default:
			if !checkTold(s, files, uri, agents, watched) {
				return
			}
		}
		s.letPass(time.Second)
		if !checkSubscribed(s, files, watched) {
			return
		}
	}
}

// isWithin reports whether an agent that watches a resource gets the updates of another.
func isWithin(uri, watched string) bool {
	return uri == watched || strings.HasPrefix(uri, strings.TrimSuffix(watched, "/")+"/")
}

// checkTold has the server announce an update, and judges which agents get it. An update that no agent watches reaches none.
func checkTold(s *stage, files *server, uri string, agents []*agent, watched []map[string]bool) bool {
	before := make([]int, len(agents))
	for i, a := range agents {
		if a != nil {
			before[i] = len(a.notesOf("notifications/resources/updated"))
		}
	}
	files.notifyClients("notifications/resources/updated", map[string]any{"uri": uri})
	s.letPass(2 * time.Second)
	for i, a := range agents {
		if a == nil {
			continue
		}
		want, got := 0, 0
		for one, stands := range watched[i] {
			if stands && isWithin(uri, one) {
				want++
			}
		}
		for _, n := range a.notesOf("notifications/resources/updated")[before[i]:] {
			var p struct{ URI string }
			if _ = json.Unmarshal(n.Params, &p); p.URI != uri {
				s.reportFinding("I24", "files", "it told of an update of %s, and an agent was told of %s", uri, p.URI)
				return false
			}
			got++
		}
		// An agent that watches a directory and what is in it may get the update once or twice.
		if want == 0 && got > 0 || want > 0 && (got == 0 || got > want) {
			s.reportFinding("I24", "files", "it told of an update of %s, which agent %d watches in %d ways, and that was told %d times", uri, i, want, got)
			return false
		}
	}
	return true
}

// checkSubscribed judges that the server was asked for what is watched, and for nothing else.
func checkSubscribed(s *stage, files *server, watched []map[string]bool) bool {
	var want, got []string
	for _, uri := range watchedURIs {
		if slices.ContainsFunc(watched, func(uris map[string]bool) bool { return uris[uri] }) {
			want = append(want, uri)
		}
		last := ""
		files.mu.Lock()
		for _, m := range files.heard {
			var p struct{ URI string }
			if m.method == "resources/subscribe" || m.method == "resources/unsubscribe" {
				if _ = json.Unmarshal(m.params, &p); p.URI == uri {
					last = m.method
				}
			}
		}
		files.mu.Unlock()
		if last == "resources/subscribe" {
			got = append(got, uri)
		}
	}
	if !slices.Equal(got, want) {
		s.reportFinding("I24", "files", "agents watch %q, and the server was asked for %q", want, got)
		return false
	}
	return true
}
