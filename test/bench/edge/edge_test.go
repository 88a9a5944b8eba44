package edge

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

var (
	sessions  = flag.Int("sessions", 2_000, "how many sessions there are at once")
	abandoned = flag.Int("abandoned", 40_000, "how many sessions are opened and left")
)

func TestMain(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// An idle session, and one with a stream, stay within their bounds.
func TestSessionsAreSmall(t *testing.T) {
	service, end, err := startService(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	idle, err := sessionBytes(t.Context(), service, *sessions)
	if err != nil || idle > maxSession {
		t.Errorf("an idle session holds %d bytes, %v", idle, err)
	}
	stream, err := streamBytes(t.Context(), service, *sessions)
	if err != nil || stream > maxStream {
		t.Errorf("a session with a stream holds %d bytes, %v", stream, err)
	}
	t.Logf("%d sessions: %d bytes each, %d with a stream", *sessions, idle, stream)
}

// Sessions that agents open and leave are bounded while they last, and leave nothing.
func TestAbandonedSessionsLeaveNothing(t *testing.T) {
	service, end, err := startLists(t.Context(), 3) // its server remembers no call
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if _, err := abandon(t.Context(), service, 1000); err != nil { // it makes everything that is made once
		t.Fatal(err)
	}
	begin := time.Now()
	l, err := abandon(t.Context(), service, *abandoned)
	if err != nil || l.most > 16_384 || l.sessions > 0 || l.after-l.before > 1<<20 {
		t.Errorf("of %d sessions there were %d at most, %d are left, and %d bytes, %v", *abandoned, l.most, l.sessions, l.after-l.before, err)
	}
	if held := service.(*gateway.Gateway).Held(); held != (gateway.Held{}) {
		t.Errorf("the gateway keeps %+v", held)
	}
	t.Logf("%d sessions in %s: %d at most; %d bytes before, %d after", *abandoned, time.Since(begin).Round(time.Millisecond), l.most, l.before, l.after)
}

// Every session is told that the tools of a killed server are gone, and that they are back.
func TestEachSessionIsToldOfAKilledServer(t *testing.T) {
	n := min(*sessions, 1000)
	k, err := measureKill(t.Context(), n)
	if err != nil || k.notified != n {
		t.Fatalf("of %d sessions %d were told, %v", n, k.notified, err)
	}
	t.Logf("%d sessions: gone after %s, back after %s", n, k.gone, k.back)
}

// A call through the gateway reaches the server and comes back, in each of the ways that are measured.
func TestCallsAreMeasured(t *testing.T) {
	for _, upstream := range []string{"stdio", "http"} {
		r, err := measureCalls(t.Context(), upstream, 2, 2, 20*time.Millisecond)
		if err != nil || r.median <= 0 || r.rate <= 0 || (r.direct > 0) != (upstream == "http") {
			t.Errorf("%s: %+v, %v", upstream, r, err)
		}
	}
}

// Every list that is measured is whole.
func TestListsAreMeasured(t *testing.T) {
	service, end, err := startLists(t.Context(), 50)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	h := serve.NewHandler(serve.Options{Service: service})
	for _, l := range listed {
		if warm, err := measureList(t.Context(), h, l.method, 50, 3); err != nil || warm <= 0 {
			t.Errorf("%s: %v ms, %v", l.name, warm, err)
		}
	}
}
