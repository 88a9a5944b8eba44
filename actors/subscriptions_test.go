package actors

import (
	"slices"
	"testing"
)

// TestAnswersOfCallersWhoSubscribeAtOnce: what one caller is told says nothing about the request of another that is under way.
// Found by a random day: while a caller's request was under way, that of another could not be sent, and the updates of a resource to
// which the server then agreed reached nobody.
func TestAnswersOfCallersWhoSubscribeAtOnce(t *testing.T) {
	watched := func(w *Subscriptions) string {
		if slices.Equal(w.URIs(), []string{"a"}) {
			return "watched"
		}
		return "not watched"
	}
	for name, c := range map[string]struct {
		answers func(w *Subscriptions)
		want    string
	}{
		"the second is refused first": {func(w *Subscriptions) {
			first := w.addURI("a")
			w.noteAnswer("a", w.addURI("a"), false)
			w.noteAnswer("a", first, true)
		}, "watched"},
		"the second is refused last": {func(w *Subscriptions) {
			first, second := w.addURI("a"), w.addURI("a")
			w.noteAnswer("a", first, true)
			w.noteAnswer("a", second, false)
		}, "watched"},
		"both are refused": {func(w *Subscriptions) {
			first, second := w.addURI("a"), w.addURI("a")
			w.noteAnswer("a", first, false)
			w.noteAnswer("a", second, false)
		}, "not watched"},
		"refused after it was agreed to once": {func(w *Subscriptions) {
			w.noteAnswer("a", w.addURI("a"), true)
			w.noteAnswer("a", w.addURI("a"), false)
		}, "watched"},
		"agreed to after another caller has unsubscribed": {func(w *Subscriptions) {
			first := w.addURI("a")
			w.removeURI("a")
			w.noteAnswer("a", first, true)
		}, "not watched"},
		"refused after another caller has subscribed anew": {func(w *Subscriptions) {
			first := w.addURI("a")
			w.removeURI("a")
			second := w.addURI("a")
			w.noteAnswer("a", first, false)
			w.noteAnswer("a", second, true)
		}, "watched"},
	} {
		var w Subscriptions
		c.answers(&w)
		if got := watched(&w); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
