package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// Requests that end together end in the order in which they were made, not in that of a map: those who ask another connection
// then keep their places.
func TestRequestsEndInTheirOrder(t *testing.T) {
	for name, end := range map[string]func(*Session){
		"the session ends": func(s *Session) { s.endSession(&messages.Error{Text: "gone"}) },
		"their time ends":  func(*Session) { time.Sleep(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Session{pending: map[int64]*pendingRequest{}, dead: make(chan struct{}), endLifetime: func() {}}
				var all []*pendingRequest
				for range 20 {
					f, e := s.registerRequest(NewCallTimeout(t.Context(), time.Second, 0), nil, false)
					if e != nil {
						t.Fatal(e)
					}
					// Without room for an answer each end waits for its receiver, so that only one order comes through.
					f.answer = make(chan outcome.Answer)
					all = append(all, f)
				}
				go end(s)
				for i, f := range all {
					select {
					case <-f.answer:
					case <-time.After(time.Minute):
						t.Fatalf("request %d does not end before those after it", i+1)
					}
				}
			})
		})
	}
}
