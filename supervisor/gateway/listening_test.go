package gateway

import "testing"

// A view is used for as long as a session or a subscription of it is there: an agent that has gone is told nothing more, and kept by nothing.
func TestAViewIsUsedWhileAgentsListen(t *testing.T) {
	one, two := &listening{number: 1}, &listening{number: 2}
	v := &view{listens: map[*listening]struct{}{one: {}, two: {}}}
	v.removeListening(one)
	if _, there := v.listens[one]; there || !v.isUsed() {
		t.Errorf("one of two has gone: %v, used %v", v.listens, v.isUsed())
	}
	v.removeListening(one) // which has gone
	if v.removeListening(two); v.isUsed() || len(v.listens) != 0 {
		t.Errorf("both have gone: %v, used %v", v.listens, v.isUsed())
	}
}
