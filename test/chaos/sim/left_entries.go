package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// leftEntries notices entries that the manager's parts leave behind in maps, and in lists of pointers and functions: it keeps each actor
// that has ended, and the first attempts to connect whose connections were closed, and counts what the maps and lists that they reach
// hold when the run is over. Each belongs to something that has ended by then, so it has to be empty. mayKeep names those that are not.
//
// What an actor drops whole while it works is not seen: what leaks must still be reachable from its owner.
type leftEntries struct {
	mu sync.Mutex
	// ended holds actors and attempts, in the order in which they ended; attempts counts the latter.
	ended    []reflect.Value
	attempts int
	// releases says of the type of each message whether it tells an actor that a connection is closed: a name is made anew each time
	// that it is asked for, and every message comes here.
	releases sync.Map
}

// keptAttempts bounds the attempts whose parts are kept until the end of the run: their sessions hold buffers.
const keptAttempts = 100

// mayKeep holds what keeps entries after its owner's end, by type and field, and why.
var mayKeep = map[string]string{
	"actors.Subscriptions.uris":         "what callers watch is kept for the next connection, and goes with the server",
	"actors.attempt.gates":              "the gates go with the attempt, and each new one forgets those that are closed and empty",
	"asker.Asker.granted":               "what a person has allowed for as long as the manager lives",
	"audit.Lost.Kinds":                  "a count for each kind of record",
	"audit.Stats.Kinds":                 "a count for each kind of record",
	"origin.HeaderSet.Own":              "the headers of a kind of request are those of the connection",
	"origin.Origin.Header":              "the headers of the configuration, which each connection shares",
	"origin.credentialSet.given":        "as origin.credentials.sets",
	"origin.credentialSet.used":         "as origin.credentials.sets",
	"origin.credentials.sets":           "what a connection knows of its credentials goes with it, and is bounded",
	"output.Checker.schemas":            "compiled schemas, 512 at most, which servers may share",
	"pins.Store.compared":               "the memory of definitions is the program's, and outlives servers",
	"pins.Store.now":                    "as pins.Store.compared",
	"pins.comparedList.hashes":          "as pins.Store.compared",
	"requests.rateLimits.byServer":      "a server that has its whole burst again is forgotten with the next question",
	"sparing.Limiter.bySubject":         "a bounded number, whose time ends with the next line",
	"subscriptions.Stream.honouredURIs": "as subscriptions.Watches.uris",
	"subscriptions.Watches.uris":        "what a session watched goes with the session",
	"supervisor.Config.Interceptors":    "the program's own",
	"supervisor.entryActor.handlers":    "the table of messages",
	"supervisor.entryActor.watchers":    "the actor tells those that watch of its end, and keeps them",
	"supervisor.replyCache.order":       "the ids of calls by message are remembered for ten minutes, 4,096 at most",
}

// sameLength holds the maps that may keep as many entries as another field of their owner has elements.
var sameLength = map[string]string{"supervisor.replyCache.byID": "order"}

// noteEnded keeps an actor that has ended. Any goroutine may call it.
func (l *leftEntries) noteEnded(a actor.Actor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, reflect.ValueOf(a))
}

// noteReleased keeps the attempt of a server's actor that is told of its release. Any goroutine may call it.
func (l *leftEntries) noteReleased(a actor.Actor, message any) {
	t := reflect.TypeOf(message)
	released, known := l.releases.Load(t)
	if !known {
		released = t != nil && t.Name() == "connClosed"
		l.releases.Store(t, released)
	}
	if released == false {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A message of an attempt before the present one tells nothing of this one.
	attempt := reflect.ValueOf(a).Elem().FieldByName("att")
	if l.attempts++; l.attempts > keptAttempts || attempt.IsNil() || attempt.Elem().FieldByName("epoch").Uint() != reflect.ValueOf(message).FieldByName("epoch").Uint() {
		return
	}
	l.ended = append(l.ended, attempt)
}

// checkLeftEntries records what was left. It is called when nothing of the manager runs any more.
func (w *simulation) checkLeftEntries() {
	l := &w.leftEntries
	l.mu.Lock()
	defer l.mu.Unlock()
	c := entryCounter{seen: map[uintptr]bool{}, left: map[string]int{}}
	for _, v := range l.ended {
		c.count(v, "")
	}
	for _, at := range slices.Sorted(maps.Keys(c.left)) {
		if mayKeep[at] == "" {
			w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I12", Text: leftText(c.left[at], at)})
		}
	}
}

// leftText says how many entries were left where.
func leftText(n int, at string) string {
	if n == 1 {
		return "One entry was left in " + at
	}
	return fmt.Sprintf("%d entries were left in %s", n, at)
}

// An entryCounter walks over what a value reaches and counts the entries of its maps and lists.
type entryCounter struct {
	seen map[uintptr]bool
	left map[string]int // by type and field
}

// count counts the entries below a value that stands at a place: the field of a type.
func (c entryCounter) count(v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || c.seen[v.Pointer()] || !isOurs(v.Type().Elem()) {
			return
		}
		c.seen[v.Pointer()] = true
		c.count(v.Elem(), at)
	case reflect.Interface:
		c.count(v.Elem(), at)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[sync.Map]() && v.CanAddr() {
			(*sync.Map)(v.Addr().UnsafePointer()).Range(func(_, value any) bool {
				c.left[at]++
				c.count(reflect.ValueOf(value), at)
				return true
			})
		}
		if !isOurs(v.Type()) {
			return
		}
		for i := range v.NumField() {
			at := v.Type().String() + "." + v.Type().Field(i).Name
			if pair := sameLength[at]; pair == "" || v.Field(i).Len() != v.FieldByName(pair).Len() {
				c.count(v.Field(i), at)
			}
		}
	// Lists of plain values are contents, such as a history; those of pointers and functions refer to what is at work.
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Len() > 0 && (v.Type().Elem().Kind() == reflect.Pointer || v.Type().Elem().Kind() == reflect.Func) {
			c.left[at] += v.Len()
		}
		for i := range v.Len() {
			c.count(v.Index(i), at)
		}
	case reflect.Map:
		if v.Len() > 0 {
			c.left[at] += v.Len()
		}
		for _, key := range v.MapKeys() {
			c.count(v.MapIndex(key), at)
		}
	default:
	}
}

// isOurs reports whether a type is one of the manager's own: values of others are theirs.
func isOurs(t reflect.Type) bool {
	const module = "github.com/mcpvisor/mcpvisor/"
	return strings.HasPrefix(t.PkgPath(), module) && !strings.HasPrefix(t.PkgPath(), module+"test/") && t.PkgPath() != module+"messages"
}
