package gateway

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The call of a task was sent again after its connection had broken, and became another task of its server, which was to live for 4 s: the
// gateway counted them from when the agent had its own task, ended that too early, and cancelled what the server would have gone on with.
func TestTheTimeOfATaskCountsFromWhenItsServerBeganIt(t *testing.T) {
	begin := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	const ttl = 4 * time.Second
	for _, c := range []struct {
		name   string
		wished time.Duration
		// The statuses came so long after the task was made, and it then lives so long from when it was made.
		statuses []messages.TaskStatus
		after    []time.Duration
		want     time.Duration
	}{
		{"no status", 0, nil, nil, defaultTaskTime},
		{"its server gives it a time", 0, []messages.TaskStatus{{ID: "a", TTL: messages.Duration(ttl)}}, []time.Duration{0}, ttl},
		{"its server was waited for", 0, []messages.TaskStatus{{ID: "a", TTL: messages.Duration(ttl)}}, []time.Duration{9 * time.Second}, 13 * time.Second},
		{"its call was sent again", 0, []messages.TaskStatus{{ID: "a", TTL: messages.Duration(time.Minute)}, {ID: "b", TTL: messages.Duration(ttl)}},
			[]time.Duration{0, 2 * time.Second}, 6 * time.Second},
		{"its server says another time", 0, []messages.TaskStatus{{ID: "a", TTL: messages.Duration(time.Minute)}, {ID: "a", TTL: messages.Duration(ttl)}},
			[]time.Duration{time.Second, 2 * time.Second}, 5 * time.Second},
		{"its server says none any more", 0, []messages.TaskStatus{{ID: "a", TTL: messages.Duration(ttl)}, {ID: "a"}}, []time.Duration{0, 2 * time.Second}, ttl},
		{"its call was sent again, and its server gives it no time", time.Minute, []messages.TaskStatus{{ID: "a", TTL: messages.Duration(ttl)}, {ID: "b"}},
			[]time.Duration{0, 2 * time.Second}, 62 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTaskState("ours", c.wished, begin)
			for i, status := range c.statuses {
				s.noteStatus(status, begin.Add(c.after[i]))
			}
			if got := s.expires().Sub(begin); got != c.want {
				t.Errorf("it lives for %s, want %s", got, c.want)
			}
		})
	}
}
