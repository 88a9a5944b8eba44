package drills

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// playStreams lets a server over HTTP change its tools while the stream breaks on which it announces that, or is refused, and lets it forget its sessions.
// Some time after, the catalog has its tools, and each call in between is answered.
func playStreams(s *stage) {
	box := newServer("box", "one")
	front := s.putBehindWeb(box)
	front.numbered = s.isOneIn(2)
	m := s.connectServers(supervisor.Config{}, box)
	if m == nil {
		return
	}
	s.addStory("the server numbers its events: %t", front.numbered)
	for range 3 + s.rng.IntN(3) {
		for range 1 + s.rng.IntN(4) {
			s.letPass(s.drawSpan(0, pickOne(s, 100*time.Millisecond, 3*time.Second, time.Minute)))
			if !disturbStreams(s, m, box, front) {
				return
			}
		}
		front.refuseStreams(0, 0)
		s.letPass(3 * time.Minute)
		var got []string
		for _, e := range m.Tools().Server("box") {
			got = append(got, e.Tool.Name)
		}
		slices.Sort(got)
		if want := namesOf(box); !slices.Equal(got, want) {
			s.reportFinding("I14", "box", "it has the tools %q since three minutes, and the catalog has %q", want, got)
			return
		}
	}
}

// isRestarting reports whether the server waits for its next attempt.
func isRestarting(m *supervisor.Manager) bool {
	status, err := m.ServerStatus("box")
	return err == nil && status.Step == messages.Restarting
}

// namesOf returns the names of a server's tools, sorted.
func namesOf(srv *server) (names []string) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, tool := range srv.tools {
		names = append(names, tool["name"].(string))
	}
	slices.Sort(names)
	return names
}

// disturbStreams does one thing that may keep announcements from the manager. It returns false after a finding.
func disturbStreams(s *stage, m *supervisor.Manager, box *server, front *webFront) bool {
	switch n := s.rng.IntN(10); {
	case n < 3:
		names := []string{"one"}
		for _, name := range []string{"two", "three", "four"} {
			if s.isOneIn(2) {
				names = append(names, name)
			}
		}
		s.addStory("its tools are %q", names)
		box.setTools(names...)
	case n < 5:
		s.addStory("the stream is cut")
		front.cutStreams()
	case n == 5:
		status := pickOne(s, http.StatusServiceUnavailable, http.StatusConflict, http.StatusTooManyRequests)
		retryAfter := pickOne(s, 0, 1, 20)
		s.addStory("the stream is cut, and streams are refused with %d, retry after %d", status, retryAfter)
		front.refuseStreams(status, retryAfter)
		front.cutStreams()
	case n == 6:
		s.addStory("streams are open")
		front.refuseStreams(0, 0)
	case n == 7:
		s.addStory("it forgets its sessions")
		front.forgetSessions()
	case n == 8:
		s.addStory("it forgets its events, and the stream is cut")
		front.forgetEvents()
		front.cutStreams()
	default:
		s.addStory("one is called")
		args := fmt.Sprintf(`{"n":%d}`, s.rng.IntN(1000))
		result, err := m.CallServerTool(s.ctx, "box", "one", []byte(args))
		if messages.OutcomeOf(err) == messages.OutcomeNotSent && isRestarting(m) {
			break // a second session was lost too soon after the first
		}
		if err != nil || result.Text() != args {
			s.reportFinding("I2", "box", "a call was answered, and ended with %v (outcome %q)", err, messages.OutcomeOf(err))
			return false
		}
	}
	return true
}
