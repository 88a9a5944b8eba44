package inprocess

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports"
)

// TestQueueAgainstPlain compares the queue with what its comment says, on random histories.
func TestQueueAgainstPlain(t *testing.T) {
	type entry struct {
		name     string
		size     int
		item     *queueItem
		accepted bool
	}
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var q messageQueue
		var plain []*entry
		isAccepted := func(e *entry) bool {
			if e.item == nil {
				return true
			}
			select {
			case <-e.item.accepted:
				return true
			default:
				return false
			}
		}
		for step := range 200 {
			switch rnd.IntN(3) {
			case 0:
				e := &entry{name: fmt.Sprint(step), size: 4 + rnd.IntN(maxQueuedBytes)}
				if rnd.IntN(5) == 0 {
					e.size += maxQueuedBytes
				}
				msg := make([]byte, e.size)
				copy(msg, e.name)
				e.item = q.putMessage(transports.Message{Body: msg})
				plain = append(plain, e)
			case 1:
				taken, _ := q.takeMessage()
				msg := taken.Body
				if (msg == nil) != (len(plain) == 0) {
					t.Fatalf("take gave %d bytes of %d messages", len(msg), len(plain))
				}
				if msg != nil {
					if first := plain[0]; len(msg) != first.size || string(msg[:len(first.name)]) != first.name ||
						!isAccepted(first) {
						t.Fatalf("took another message than %s, or one that was not accepted", first.name)
					}
					plain = plain[1:]
				}
			case 2:
				if len(plain) == 0 {
					continue
				}
				i := rnd.IntN(len(plain))
				if plain[i].item == nil {
					continue
				}
				if q.withdrawItem(plain[i].item) == plain[i].accepted {
					t.Fatalf("%s was accepted: %v, and could be withdrawn all the same, or not", plain[i].name, plain[i].accepted)
				}
				if !plain[i].accepted {
					plain = append(plain[:i:i], plain[i+1:]...)
				}
			}
			// Accepted are exactly the first ones that fit together; one that was accepted stays so.
			room, open := maxQueuedBytes, true
			for _, e := range plain {
				open = open && (e.accepted || e.size <= room)
				if e.accepted = e.accepted || open; e.accepted {
					room -= e.size
				}
				if isAccepted(e) != e.accepted {
					t.Fatalf("seed %d, step %d: %s accepted: %v, want %v", seed, step, e.name, isAccepted(e), e.accepted)
				}
			}
		}
	}
}
