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
	itemStreamWanted
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
		sortRequests(items)
	}
	return items
}

// sortRequests sorts what came in one instant on one connection, within the places that it holds: if several goroutines wake in one instant,
// chance decides which of them sends first. Sorted are the requests with the client's answers before them, and what the client gives up.
// Everything else keeps its place, because it has an order: what opens a connection, what subscribes, and what ends a request.
func sortRequests(items []item) {
	for begin := 0; begin < len(items); {
		end := begin + 1
		for end < len(items) && items[end].conn == items[begin].conn {
			end++
		}
		sortPlaces(items[begin:end], func(it item) bool { return it.kind == itemSent && it.x.hasNoOrder() })
		sortPlaces(items[begin:end], func(it item) bool { return it.kind == itemAbandoned && it.x != nil })
		begin = end
	}
}

// sortPlaces sorts the items that are chosen within the places that they hold.
func sortPlaces(items []item, isChosen func(item) bool) {
	var at []int
	var chosen []item
	for i, it := range items {
		if isChosen(it) {
			at, chosen = append(at, i), append(chosen, it)
		}
	}
	slices.SortStableFunc(chosen, func(a, b item) int { return compareExchanges(a.x, b.x) })
	for i, it := range chosen {
		items[at[i]] = it
	}
}

// hasNoOrder reports whether a message has no order with others that the client sends in the same instant: a request that waits for nothing but
// its answer, or an answer.
func (x *exchange) hasNoOrder() bool {
	switch x.method {
	case "initialize", "server/discover", "resources/subscribe", "resources/unsubscribe":
		return false
	case "":
		return true
	}
	return x.id != ""
}

// sortRank ranks messages without an order: answers, then requests, then calls, so that the level of log messages that a call wants is set
// before it, then requests about tasks.
func (x *exchange) sortRank() int {
	switch {
	case x.method == "":
		return 0
	case x.isAboutTask():
		return 3
	case x.call != "":
		return 2
	}
	return 1
}

// compareExchanges compares messages by all that chance does not decide, as it does of the ids of requests. Two levels of log messages keep
// their order.
func compareExchanges(a, b *exchange) int {
	task, other := "", ""
	if a.isAboutTask() && b.isAboutTask() {
		task, other = taskOf(a.body), taskOf(b.body)
	}
	if c := cmp.Or(cmp.Compare(a.sortRank(), b.sortRank()),
		// Shorter ids first, so that call 10 follows call 9.
		cmp.Compare(len(a.call), len(b.call)), cmp.Compare(a.call, b.call), cmp.Compare(len(task), len(other)), cmp.Compare(task, other),
		cmp.Compare(a.method, b.method)); c != 0 || a.method == "logging/setLevel" {
		return c
	}
	return bytes.Compare(paramsOf(a), paramsOf(b))
}

// paramsOf returns the bytes of a message behind its id, all of an answer.
func paramsOf(x *exchange) []byte {
	if i := bytes.Index(x.body, []byte(`"params":`)); i >= 0 && x.method != "" {
		return x.body[i:]
	}
	return x.body
}
