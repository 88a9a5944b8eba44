package sim

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// inbox holds what the manager's goroutines have handed to the servers. The loop takes the items when every goroutine waits,
// and sorts them, so that the order in which the goroutines ran does not matter. It has no bound: the manager's own limits
// bound it.
type inbox struct {
	// wake gives the loop a token; it is called without mu.
	wake func()

	// mu guards items, and itemCount of the connections.
	mu    sync.Mutex
	items []item
}

// item is one thing that a connection has done.
type item struct {
	host *simServer
	// number counts the items of the connection.
	conn   conn
	number int // of this connection's
	kind   itemKind
	x      *exchange
	// used belongs to itemMeasured.
	used procinfo.Usage
}

// The kinds of items, in the order of a connection's life. A connection may be released at any time after its dial.
type itemKind uint8

const (
	itemDialed itemKind = iota
	itemSent
	itemAbandoned
	itemClosing
	itemTerminating
	itemMeasured
	itemReleased
)

// addItem adds an item, to which it gives its number, and wakes the loop. Any goroutine may call it.
func (b *inbox) addItem(it item) {
	b.mu.Lock()
	base := it.conn.base()
	base.itemCount++
	it.number = base.itemCount
	b.items = append(b.items, it)
	b.mu.Unlock()
	b.wake()
}

// takeItems appends everything that has come to items, and sorts the result by server, connection and number.
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

// sortCalls sorts the calls that came in one instant on one connection by their ids, with the client's answers before them,
// within the places that they hold together: if several goroutines wake in one instant, chance decides which of them sends
// first. Everything else keeps its place.
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
			// Shorter ids first, so that call 10 follows call 9. Answers have no call id and are sorted by their bytes.
			return cmp.Or(cmp.Compare(len(a.x.call), len(b.x.call)), cmp.Compare(a.x.call, b.x.call), bytes.Compare(a.x.body, b.x.body))
		})
		for i, it := range calls {
			items[at[i]] = it
		}
		begin = end
	}
}
