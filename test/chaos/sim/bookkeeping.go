package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// bookkeeping has the manager's parts check themselves: the state of a server, the queue of its calls, the gate of the starts, and whatever else has
// a method Check. The parts of an actor are asked after each message that it has handled, and the catalog at each glance. The violations are of I29.
//
// A counter that was not counted down, or a mark that stays, shows at once that way. What it does to a caller may need a coincidence that no day brings.
type bookkeeping struct {
	// report is called once, with what the first part says that contradicts itself, and the server whose part it is, if it belongs to one.
	report func(server, text string)
	// last is the message after which parts are asked; nil for a glance at the catalog.
	last *handledMessage
	// mu guards the fields below: turns follow each other, unless an actor of a broken manager blocks in one.
	mu sync.Mutex
	// reaches says of each type whether a value of it leads to a part that checks itself.
	reaches map[reflect.Type]bool
	// layouts has what is known of the structs that were visited: to find it out takes longer than the checks do.
	layouts map[reflect.Type]*structLayout
	// reported is set once a contradiction was found: it rarely comes alone.
	reported bool
	// every is after how many messages the parts are asked once; 0 means after each. handled counts the messages.
	every, handled int
	// glances counts those of a run with many servers, whose catalog is asked at one of bookkeepingMost.
	glances int
}

// A selfChecker is a part of the manager that looks for contradictions in itself.
type selfChecker interface{ Check() error }

// bookkeepingMost is the most servers with which parts are asked after each message. With more it is after one of bookkeepingPause messages for each
// server, because the gate counts all servers each time: a day of a thousand would take twice as long.
const bookkeepingMost, bookkeepingPause = 64, 8

// seldomAsked are the parts whose check visits every tool of every server.
var seldomAsked = []reflect.Type{reflect.TypeFor[catalog.Snapshot]()}

var selfCheckerType = reflect.TypeFor[selfChecker]()

// noteHandled asks the parts of an actor that has handled a message. The scheduler calls it within the actor's turn, so that nothing of it is at work but
// what has a lock (seed 20992902).
func (b *bookkeeping) noteHandled(a actor.Actor, last *handledMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handled++; b.reported || b.every > 0 && b.handled%b.every != 0 {
		return
	}
	b.last = last
	defer func() { b.last = nil }()
	if v := reflect.ValueOf(a); v.Kind() == reflect.Pointer {
		b.askParts(v.Elem(), 0)
	}
}

// bookkeepingDepth bounds the pointers and interfaces from an actor to its parts: a part further away has another owner.
const bookkeepingDepth = 3

// askParts asks an addressable value that is so many pointers and interfaces away from its actor, and what it leads to.
func (b *bookkeeping) askParts(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || depth == bookkeepingDepth {
			return
		}
		if v = v.Elem(); v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.IsValid() && v.CanAddr() && b.leadsToCheck(v.Type()) {
			b.askParts(v, depth+1)
		}
	case reflect.Struct:
		l := b.layoutOf(v.Type())
		if l.checksItself {
			b.askPart(v.Type(), reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Interface().(selfChecker)) //nolint:forcetypeassert // it implements it
			return
		}
		unlock, free := l.lock(v)
		defer unlock()
		for _, i := range l.parts {
			if free {
				b.askParts(v.Field(i), depth)
			}
		}
	default:
	}
}

// A structLayout says of a struct type whether its pointer checks itself, and otherwise which of its fields are locks and which may lead to a part
// that does.
type structLayout struct {
	checksItself bool
	locks, parts []int
}

// layoutOf returns the layout of a struct type.
func (b *bookkeeping) layoutOf(t reflect.Type) *structLayout {
	if l := b.layouts[t]; l != nil {
		return l
	}
	l := &structLayout{checksItself: reflect.PointerTo(t).Implements(selfCheckerType)}
	for i := range t.NumField() {
		switch f := t.Field(i).Type; {
		case f == reflect.TypeFor[sync.Mutex](), f == reflect.TypeFor[sync.RWMutex]():
			l.locks = append(l.locks, i)
		case b.leadsToCheck(f):
			l.parts = append(l.parts, i)
		}
	}
	if b.layouts == nil {
		b.layouts = map[reflect.Type]*structLayout{}
	}
	b.layouts[t] = l
	return l
}

// lock takes the locks of an addressable struct: what they guard may be at work for a call, while its actor is not. free is false if one of them
// is taken, in which case the parts are asked after another message.
func (l *structLayout) lock(v reflect.Value) (unlock func(), free bool) {
	var taken []sync.Locker
	unlock = func() {
		for _, l := range taken {
			l.Unlock()
		}
	}
	for _, i := range l.locks {
		var lock interface {
			sync.Locker
			TryLock() bool
		}
		at := v.Field(i).Addr().UnsafePointer()
		if lock = (*sync.Mutex)(at); v.Field(i).Type() == reflect.TypeFor[sync.RWMutex]() {
			lock = (*sync.RWMutex)(at)
		}
		if !lock.TryLock() {
			return unlock, false
		}
		taken = append(taken, lock)
	}
	return unlock, true
}

// leadsToCheck reports whether values of a type may lead to a part that checks itself: over fields, pointers and interfaces of the manager's own
// types, and not over lists and maps.
func (b *bookkeeping) leadsToCheck(t reflect.Type) bool {
	reaches, known := b.reaches[t]
	if known {
		return reaches
	}
	if b.reaches == nil {
		b.reaches = map[reflect.Type]bool{}
	}
	b.reaches[t] = false // for types that lead to themselves
	switch t.Kind() {
	case reflect.Pointer:
		reaches = b.leadsToCheck(t.Elem())
	case reflect.Interface:
		reaches = isOurs(t)
	case reflect.Struct:
		if !isOurs(t) || slices.Contains(seldomAsked, t) {
			break
		}
		reaches = reflect.PointerTo(t).Implements(selfCheckerType)
		for i := 0; !reaches && i < t.NumField(); i++ {
			reaches = b.leadsToCheck(t.Field(i).Type)
		}
	default:
	}
	b.reaches[t] = reaches
	return reaches
}

// askPart asks one part, and reports the first contradiction of a run.
func (b *bookkeeping) askPart(t reflect.Type, part selfChecker) {
	if b.reported {
		return
	}
	if err := part.Check(); err != nil {
		b.reported = true
		server, after := "", ""
		if b.last != nil {
			server, after = serverOf(b.last.actor), fmt.Sprintf(", after the actor %s has handled %s", b.last.actor, b.last)
		}
		b.report(server, "a "+strings.SplitN(t.String(), "[", 2)[0]+" contradicts itself"+after+": "+err.Error())
	}
}

// isGlanceDue reports whether the catalog is to be asked at this glance. Only the loop calls it.
func (b *bookkeeping) isGlanceDue() bool {
	b.glances++
	return b.every == 0 || b.glances%bookkeepingMost == 0
}

// askCatalog asks the catalog.
func (b *bookkeeping) askCatalog(s *catalog.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.askPart(seldomAsked[0], s)
}

// checkRemembered judges that the catalog keeps nothing of servers that were removed; both lists are sorted. One is known to have been if the manager does not have it at two
// glances in a row: the registry hears of a removal a moment later than the owner.
func (w *simulation) checkRemembered(remembered, servers []string) {
	missing := map[string]bool{}
	for _, name := range remembered {
		if _, has := slices.BinarySearch(servers, name); has {
			continue
		}
		if missing[name] = true; w.missing[name] {
			w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I12", Server: name, Text: "the catalog still keeps a server that was removed"})
		}
	}
	w.missing = missing
}

// reportContradiction records what a part of the manager says. Any goroutine may call it.
func (w *simulation) reportContradiction(server, text string) {
	w.rec.Add(history.Event{T: w.elapsedTime(), Server: server, Side: history.Harness, Kind: history.Violation, Name: "I29", Text: text})
}
