package session

import (
	"context"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestAQuestionIsOneCallersOnlyIfAllRequestsAre: callers are told apart by their names (messages.WithCaller) as well as by who answers
// for them; a request that was given up counts.
func TestAQuestionIsOneCallersOnlyIfAllRequestsAre(t *testing.T) {
	as := func(caller string) context.Context { return messages.WithCaller(t.Context(), caller) }
	for name, c := range map[string]struct {
		pending   []string
		abandoned string
		want      string // the caller to whom the question belongs, "-" for none
	}{
		"one request":             {pending: []string{"anna"}, want: "anna"},
		"two of one caller":       {pending: []string{"anna", "anna"}, want: "anna"},
		"of two callers":          {pending: []string{"anna", "ben"}, want: "-"},
		"another's was given up":  {pending: []string{"anna"}, abandoned: "ben", want: "-"},
		"the own was given up":    {pending: []string{"anna"}, abandoned: "anna", want: "anna"},
		"of a caller and of none": {pending: []string{"anna", ""}, want: "-"},
	} {
		s := &Session{pending: map[int64]*pendingRequest{}}
		for i, caller := range c.pending {
			s.pending[int64(i+1)] = &pendingRequest{id: int64(i + 1), ctx: as(caller)}
		}
		if c.abandoned != "" {
			s.rememberAbandoned(as(c.abandoned), 99)
		}
		got := "-"
		if origin := s.originOf(0, nil); origin.callerCtx != nil {
			got = messages.CallerOf(origin.callerCtx)
		}
		if got != c.want {
			t.Errorf("%s: the question is that of %q, not %q", name, got, c.want)
		}
	}
}
