package credentials

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestRequestsLookForSignIns: as long as no person has signed in, requests look for the store once a second and are otherwise
// free; who asks for another reason looks at once.
func TestRequestsLookForSignIns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		t.Setenv("XDG_STATE_HOME", state)
		k := New(Options{})
		l := &lazySignIn{owner: k, name: "s"}
		h := http.Header{}
		request := func() {
			if err := l.Authorize(t.Context(), h); err != nil || len(h) != 0 || l.authorizer.Load() != nil {
				t.Fatalf("%v, headers %v", err, h)
			}
		}
		if k.isKnownEmpty() {
			t.Error("before the first look, nothing is known")
		}
		request()
		if !k.isKnownEmpty() {
			t.Error("the first request has looked, and the next one looks again")
		}
		if n := testing.AllocsPerRun(100, request); n != 0 {
			t.Errorf("a request without a sign-in allocates %v times", n)
		}
		if err := os.MkdirAll(filepath.Join(state, "mcpvisor", "secrets"), 0o700); err != nil {
			t.Fatal(err)
		}
		if !k.mayHoldSignIn() {
			t.Error("a refused request does not see that somebody has signed in")
		}
		if !k.isKnownEmpty() {
			t.Error("a request looks before the second is over")
		}
		time.Sleep(storeCheckEvery)
		if k.isKnownEmpty() {
			t.Error("a request does not look although a second has passed")
		}
	})
}
