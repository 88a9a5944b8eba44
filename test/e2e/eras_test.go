package e2e_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

const countedRole = "e2e-counted"

// A counted server is a fixture that first notes in a file that it was started.
func init() {
	roles[countedRole] = func(args []string) int {
		file, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		if _, err := file.WriteString("started\n"); err != nil || file.Close() != nil {
			return 1
		}
		servers.Main(servers.Args(args[1], args[2:]...))
		return 1
	}
}

// countedSpec is the spec of a fixture, and how often it was started.
func countedSpec(t *testing.T, kind string, parameters ...string) (supervisor.Spec, func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "starts")
	starts := func() int {
		raw, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		return bytes.Count(raw, []byte("\n"))
	}
	return supervisor.Spec{Command: self, Args: append([]string{countedRole, file, kind}, parameters...)}, starts
}

// probedServer is a server whose era is not configured, and what must be found out about it.
type probedServer struct {
	kind       string
	parameters []string
	era        messages.Era // EraAuto: either will do
	version    string
	starts     int // of its process, until it is connected
}

// Servers as they are found: that die, stay silent or talk nonsense when they are asked what they do not know, that are
// slow, of either era. Each is connected in its own era by its first attempt, and one that cannot bear the question is
// started a second time and no more.
func TestEraEveryServerIsConnectedInItsOwn(t *testing.T) {
	checkLeaks(t)
	const legacy, modern = messages.EraLegacy, messages.EraModern
	wild := map[string]probedServer{
		"legacy":           {"good", nil, legacy, "2025-11-25", 1},
		"legacy-dies":      {"dies-on-probe", nil, legacy, "2025-11-25", 2},
		"legacy-dies-well": {"dies-on-probe", []string{"code=0"}, legacy, "2025-11-25", 2},
		"legacy-silent":    {"silent-on-probe", nil, legacy, "2025-11-25", 1},
		"legacy-closes":    {"closes-on-probe", nil, legacy, "2025-11-25", 2},
		"legacy-slow":      {"slow-start", []string{"after=3s"}, legacy, "2025-11-25", 1},
		"legacy-old":       {"wrong-version", []string{"version=2024-11-05"}, legacy, "2024-11-05", 1},
		"legacy-noisy":     {"noise", nil, legacy, "2025-11-25", 1},
		"modern":           {"modern", nil, modern, "2026-07-28", 1},
		"modern-slow":      {"modern", []string{"start=3s"}, modern, "2026-07-28", 1},
		"modern-odd":       {"modern-odd-discovery", nil, modern, "2026-07-28", 1},
		"both":             {"both-eras", nil, messages.EraAuto, "", 1},                  // a machine may be too slow to start it in time
		"both-slow":        {"both-eras", []string{"start=3s"}, messages.EraAuto, "", 1}, // both questions wait for it
	}
	for _, how := range servers.Oddities() {
		wild["legacy-says-"+how] = probedServer{"odd-on-probe", []string{"how=" + how}, legacy, "2025-11-25", 1}
	}
	specs, starts := map[string]supervisor.Spec{}, map[string]func() int{}
	for name, w := range wild {
		specs[name], starts[name] = countedSpec(t, w.kind, w.parameters...)
	}
	m := startManager(t, supervisor.Config{Servers: specs})
	for _, name := range slices.Sorted(maps.Keys(wild)) {
		t.Run(name, func(t *testing.T) {
			w := wild[name]
			awaitConnected(t, m, name)
			st := statusOf(t, m, name)
			if w.era != messages.EraAuto && (st.Era != w.era || st.ProtocolVersion != w.version) {
				t.Errorf("it is taken for %q, version %q; want %q, %q", st.Era, st.ProtocolVersion, w.era, w.version)
			}
			checkText(t, m, name, "echo", object{"text": name}, name)
			if n := starts[name](); n != w.starts || st.Restarts != 0 || st.Attempts != 0 {
				t.Errorf("%d starts, want %d; %d restarts, %d attempts", n, w.starts, st.Restarts, st.Attempts)
			}
		})
	}
}

// A server that is deaf for ever after a question that it does not know costs one connect timeout: then it is asked
// initialize first. Once it is known what it is, a reconnect asks that at once.
func TestEraAServerThatIsDeafAfterTheProbeIsInitializedNext(t *testing.T) {
	checkLeaks(t)
	deaf, starts := countedSpec(t, "deaf-before-initialize")
	deaf.ConnectTimeout = toDuration(10) // what it costs; a slow machine must have started it and asked it by then
	died, deaths := countedSpec(t, "dies-on-probe")
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"deaf": deaf, "dies": died}})
	awaitConnected(t, m, "deaf", "dies")
	checkText(t, m, "deaf", "echo", object{"text": "now"}, "now")
	if n := starts(); n != 2 {
		t.Errorf("it was started %d times until it was connected", n)
	}
	for name, count := range map[string]func() int{"deaf": starts, "dies": deaths} {
		before := count()
		if err := m.Reconnect(testContext(t, bound), name); err != nil {
			t.Fatal(err)
		}
		if n := count() - before; n != 1 {
			t.Errorf("%s: a reconnect started it %d times, though its era is known", name, n)
		}
	}
}

// A server that changes its era behind its name, as an update does, is connected in the one it has now.
func TestEraAServerThatWasUpdatedIsAskedAnew(t *testing.T) {
	checkLeaks(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "kind")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	become := func(kind string) {
		if err := os.WriteFile(file, []byte(kind), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	become("good")
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"updated": {Command: self, Args: []string{updatedRole, file}},
	}})
	for _, now := range []struct{ kind, version string }{
		{"good", "2025-11-25"}, {"modern", "2026-07-28"}, {"silent-on-probe", "2025-11-25"}, {"both-eras", ""},
	} {
		become(now.kind)
		if err := m.Reconnect(testContext(t, bound), "updated"); err != nil {
			t.Errorf("as %s: %v", now.kind, err)
		}
		awaitConnected(t, m, "updated")
		if st := statusOf(t, m, "updated"); now.version != "" && st.ProtocolVersion != now.version {
			t.Errorf("as %s it is spoken to in %q, want %q", now.kind, st.ProtocolVersion, now.version)
		}
		checkText(t, m, "updated", "echo", object{"text": now.kind}, now.kind)
	}
}

const updatedRole = "e2e-updated"

// An updated server is what a file says that it is.
func init() {
	roles[updatedRole] = func(args []string) int {
		kind, err := os.ReadFile(args[0])
		if err != nil {
			return 1
		}
		servers.Main(servers.Args(strings.TrimSpace(string(kind))))
		return 1
	}
}

// A server that ends whatever it is asked is started twice in its first attempt, because the question might be to blame,
// and once in each later one. One that has ended before the question could be written is started once in the first, too.
func TestEraACrashLoopStartsTwiceOnlyInItsFirstAttempt(t *testing.T) {
	checkLeaks(t)
	spec, starts := countedSpec(t, "exits-at-once")
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"crashes": spec}})
	for attempts := 1; attempts <= 4; attempts++ {
		var st supervisor.Status
		eventually(t, "another attempt has failed", func() bool {
			st = statusOf(t, m, "crashes")
			return st.Attempts >= attempts && st.Status == messages.Failed
		})
		if st.Class != messages.ClassExited || !containsWords(st.Error, "exit status 3") {
			t.Errorf("it is said to be %s: %s", st.Class, st.Error)
		}
		n := starts()
		// Of the next attempt, one may have begun by now.
		if after := statusOf(t, m, "crashes"); n < st.Attempts || n > after.Attempts+2 {
			t.Errorf("%d starts in %d attempts", n, after.Attempts)
		}
	}
	if err := m.Disconnect(testContext(t, bound), "crashes"); err != nil {
		t.Fatal(err)
	}
	n := starts()
	time.Sleep(100 * time.Millisecond)
	if second := starts(); second != n {
		t.Errorf("started %d times after Disconnect", second-n)
	}
}

// The era can be pinned: then nothing else is asked, and a server of the other era is an error with a reason.
func TestEraPinned(t *testing.T) {
	checkLeaks(t)
	pin := func(era messages.Era, kind string) (supervisor.Spec, func() int) {
		spec, starts := countedSpec(t, kind)
		spec.Era = era
		return spec, starts
	}
	legacy, legacyStarts := pin(messages.EraLegacy, "dies-on-probe")
	modern, _ := pin(messages.EraModern, "modern")
	notModern, _ := pin(messages.EraModern, "good")
	notLegacy, _ := pin(messages.EraLegacy, "modern")
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"legacy": legacy, "modern": modern, "not-modern": notModern, "not-legacy": notLegacy,
	}})
	awaitConnected(t, m, "legacy", "modern")
	if n := legacyStarts(); n != 1 {
		t.Errorf("a pinned server was started %d times", n)
	}
	checkText(t, m, "legacy", "echo", object{"text": "x"}, "x")
	checkText(t, m, "modern", "echo", object{"text": "x"}, "x")
	for name, words := range map[string][]string{
		"not-modern": {"server/discover", "Method not found"}, "not-legacy": {"initialize", "Method not found"},
	} {
		eventually(t, name+" has failed", func() bool { return statusOf(t, m, name).Status == messages.Failed })
		if st := statusOf(t, m, name); !containsWords(st.Error, words...) {
			t.Errorf("%s: %s", name, st.Error)
		}
	}
}
