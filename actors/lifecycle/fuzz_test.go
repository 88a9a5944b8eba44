package lifecycle

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// FuzzStep feeds events in an order that no shell would produce. Each byte is one letter of the alphabet, whose epoch
// is aimed at the state: the current one, a new one, or one that is not. Progress cannot be promised for such a
// history, but every invariant must hold and every effect must be one that a shell can perform.
func FuzzStep(f *testing.F) {
	connected := "Init enabled; Granted epoch=6; Dialed epoch=5; Greeted epoch=5; Listed epoch=5; "
	for _, history := range []string{
		connected + "Lost epoch=5 cause=exited; Closed epoch=5; Scheduled epoch=5 retry=parked at=5m0s; Granted epoch=6",
		connected + "Disable; ToolsChanged epoch=5; Enable; Listed epoch=5; Refresh; Refresh; Listed epoch=5; Disable cold",
		connected + "Reconnect; Lost epoch=3 cause=exited; Closed epoch=5; Granted epoch=6; " +
			"Unauthorized epoch=5 cause=unauthorized",
		"Init enabled lazy cached; Wake; Granted epoch=6; Disable; Enable; Closed epoch=5; Remove; Granted epoch=6",
	} {
		var data []byte
		for line := range strings.SplitSeq(history, "; ") {
			i := slices.Index(alphabet, line)
			if i < 0 {
				f.Fatalf("%q is not in the alphabet", line)
			}
			data = append(data, byte(i))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHistory()
		for i, b := range data[:min(len(data), 1000)] { // every row of the matrix is within 15 events
			e := aim(letters[alphabet[int(b)%len(alphabet)]][0], h.state.Epoch, uint64(i+1))
			if _, err := h.step(e); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// aim gives an event of the alphabet the epoch that it has in its state, and a wish its ticket.
func aim(e Event, current, ticket uint64) Event {
	if e, isWish := withTicket(e, ticket); isWish {
		return e
	}
	epoch, isFact := number(e, "Epoch")
	if !isFact {
		return e
	}
	to := reflect.New(reflect.TypeOf(e)).Elem()
	to.Set(reflect.ValueOf(e))
	to.FieldByName("Epoch").SetUint(current + epoch - now) // 0 wraps to a number that was never granted
	return to.Interface().(Event)
}
