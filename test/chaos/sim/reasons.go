package sim

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// checkReason judges the words with which a status explains a phase: they say to a person what its other parts say to a program.
func (w *simulation) checkReason(st *messages.Status) {
	if want := reasonsOf(st); !want.allow(st.Reason) {
		w.reportBrokenPromise(st.Name, fmt.Sprintf("its status explains %s %s %s (%s) with the words %q, and they had to begin with %q and end with %q", st.Status, st.Step, st.Retry, st.Class, st.Reason,
			want.begin, want.end))
	}
}

// reasonWords are the words of a reason: all of them, or its first ones, and its last ones.
type reasonWords struct{ begin, end string }

func (r reasonWords) allow(reason string) bool {
	if r.begin == "" {
		return reason == ""
	}
	return strings.HasPrefix(reason, r.begin) && strings.HasSuffix(reason, r.end)
}

// reasonsOf returns the words that a status must have for its phase.
func reasonsOf(st *messages.Status) reasonWords {
	at := func(word string) string {
		if st.NextAttempt == nil {
			return ""
		}
		return ", " + word + " at " + st.NextAttempt.Format(time.TimeOnly)
	}
	class := string(cmp.Or(st.Class, messages.ClassNone))
	switch st.Status {
	case messages.Pending:
		if st.Step == messages.Restarting {
			return reasonWords{"restarting", at("next attempt")}
		}
		return reasonWords{string(st.Step), ""}
	case messages.Failed:
		switch st.Retry {
		case messages.RetryParked:
			return reasonWords{class + ", parked", at("probe")}
		case messages.RetryNever:
			return reasonWords{class, ", not retried"}
		case messages.RetryAt:
			return reasonWords{class, at("retry")}
		default:
			return reasonWords{class, ", next attempt not planned yet"}
		}
	case messages.NeedsAuth:
		return reasonWords{"credentials needed", ""}
	case messages.Disabled:
		if st.Warm {
			return reasonWords{"warm", ""}
		}
		return reasonWords{"cold", ""}
	case messages.Connected:
		if st.ToolsError != "" {
			return reasonWords{"its tools cannot be listed", ""}
		}
	}
	return reasonWords{}
}
