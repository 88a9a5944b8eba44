package sim

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
)

// inbox is what goroutines of the manager have handed to the servers and nobody has looked at. The world empties it when
// all of them wait, sorted, so that it does not matter which of them was first.
type inbox struct {
	wake func()

	mu    sync.Mutex
	items []item
}

// item is one thing that a connection has done.
type item struct {
	host   *simServer
	conn   conn
	number int // of this connection's
	kind   itemKind
	x      *exchange
}

type itemKind uint8

const (
	itemDialed itemKind = iota
	itemSent
	itemAbandoned
	itemClosing
	itemTerminating
	itemReleased
)

func (b *inbox) addItem(h *simServer, c conn, w itemKind, x *exchange) {
	b.mu.Lock()
	base := c.base()
	base.itemCount++
	b.items = append(b.items, item{h, c, base.itemCount, w, x})
	b.mu.Unlock()
	b.wake()
}

// takeItems is everything that has come, in order.
func (b *inbox) takeItems(items []item) []item {
	b.mu.Lock()
	items = append(items, b.items...)
	clear(b.items)
	b.items = b.items[:0]
	b.mu.Unlock()
	if len(items) > 1 {
		slices.SortStableFunc(items, func(a, b item) int {
			return cmp.Or(cmp.Compare(a.host.server.Name, b.host.server.Name),
				cmp.Compare(a.conn.base().number, b.conn.base().number), cmp.Compare(a.number, b.number))
		})
		sortCalls(items)
	}
	return items
}

// sortCalls puts the calls that came in one instant on one connection in the order of their ids, behind the answers to what the
// server asked, in the places that they have together: which of several goroutines that were woken together came first is chance.
// Everything else keeps its place.
func sortCalls(items []item) {
	for begin := 0; begin < len(items); {
		end := begin + 1
		for end < len(items) && items[end].conn == items[begin].conn {
			end++
		}
		var at []int
		var calls []item
		for i, it := range items[begin:end] {
			if it.kind == itemSent && (it.x.call != "" || it.x.method == "") {
				at, calls = append(at, begin+i), append(calls, it)
			}
		}
		slices.SortStableFunc(calls, func(a, b item) int {
			return cmp.Or(cmp.Compare(len(a.x.call), len(b.x.call)), cmp.Compare(a.x.call, b.x.call), bytes.Compare(a.x.body, b.x.body))
		})
		for i, it := range calls {
			items[at[i]] = it
		}
		begin = end
	}
}
