package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// A real file system does not live in a bubble: these tests wait, with a bound that no working machine reaches, for what must
// come, and judge no time.

// desktop is a home with a project, and a manager that follows its files.
type desktop struct {
	t        *testing.T
	project  string
	user     string
	options  discover.Options
	m        *supervisor.Manager
	fakes    map[string]*fake
	follow   *supervisor.Follower
	mu       sync.Mutex
	received []supervisor.ReloadResult
}

func newDesktop(t *testing.T, names ...string) *desktop {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desktop{t: t, project: filepath.Join(root, "home", "p"), user: filepath.Join(root, "cfg", "mcp.json"),
		fakes: map[string]*fake{}}
	if err := os.MkdirAll(filepath.Join(d.project, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.options = discover.Options{Dir: d.project, Paths: discover.Paths{User: d.user, Home: filepath.Join(root, "home"),
		Approvals: filepath.Join(root, "cfg", "approvals.json"), Managed: filepath.Join(root, "etc", "managed.json")}}
	for _, name := range names {
		d.fakes[name] = newFake("x")
	}
	return d
}

// write puts a file there in one of the ways in which programs do.
func (d *desktop) write(path, text string, rename bool) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	to := path
	if rename {
		to = filepath.Join(filepath.Dir(path), ".#"+filepath.Base(path))
	}
	err := os.WriteFile(to, []byte(text), 0o600)
	if err == nil && rename {
		err = os.Rename(to, path)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// begin starts a manager without servers, which follows.
func (d *desktop) begin(change ...func(*supervisor.FollowOptions)) {
	d.t.Helper()
	serve := map[string]func(context.Context, inprocess.Peer) error{}
	for name, f := range d.fakes {
		serve[name] = f.serve
	}
	d.m = startWith(d.t, supervisor.Config{InProcess: serve})
	reading, err := discover.Read(d.options)
	if err != nil {
		d.t.Fatal(err)
	}
	o := supervisor.FollowOptions{Reading: &reading, OnReload: func(r supervisor.ReloadResult) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.received = append(d.received, r)
	}}
	for _, f := range change {
		f(&o)
	}
	if d.follow, err = supervisor.Follow(d.t.Context(), d.m, o); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(d.follow.Close)
}

// becomes waits until exactly these servers are connected.
func (d *desktop) becomes(names ...string) {
	d.t.Helper()
	eventually(d.t, fmt.Sprint(names), func() bool { return slices.Equal(d.m.ConnectedServers(), names) })
}

// entries are servers in a file: each is the fake of its name, with more keys if there are some.
func entries(all ...string) string {
	var out []string
	for _, e := range all {
		name, more, _ := strings.Cut(e, " ")
		if more != "" {
			more = ", " + more
		}
		out = append(out, fmt.Sprintf(`%q: {"type": "sdk"%s}`, name, more))
	}
	return `{"mcpServers": {` + strings.Join(out, ", ") + `}}`
}

func TestChangedFilesAreFollowed(t *testing.T) {
	seeds.Shows(t, "004.f.hot-reload")
	for _, rename := range []bool{false, true} {
		t.Run(fmt.Sprintf("rename %v", rename), func(t *testing.T) {
			d := newDesktop(t, "a", "b")
			d.begin() // there is no file yet, and no folder for it
			d.write(d.user, entries("a"), rename)
			d.becomes("a")
			before := status(t, d.m, "a").Epoch
			d.write(d.user, entries(`a "callTimeout": "9s"`, "b"), rename)
			d.becomes("a", "b")
			d.write(d.user, "{", rename)
			eventually(t, "the broken file is reported", func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return len(d.received) > 0 && len(d.received[len(d.received)-1].Problems) > 0
			})
			d.becomes("a", "b")
			d.write(d.user, entries(`a "callTimeout": "9s"`), rename)
			d.becomes("a")
			if st := status(t, d.m, "a"); st.Epoch != before || time.Duration(st.Config.CallTimeout) != 9*time.Second {
				t.Errorf("epoch %d before, %d after; %v", before, st.Epoch, st.Config.CallTimeout)
			}
			if err := os.Remove(d.user); err != nil {
				t.Fatal(err)
			}
			d.becomes()
		})
	}
}

// What Kubernetes does with a ConfigMap: the file is a link into ..data, which is a link to a folder, and is turned.
func TestATurnedLinkIsFollowed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	d := newDesktop(t, "a", "b")
	dir := filepath.Dir(d.user)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d.write(filepath.Join(dir, "..1", "mcp.json"), entries("a"), false)
	d.write(filepath.Join(dir, "..2", "mcp.json"), entries("b"), false)
	must(os.Symlink("..1", filepath.Join(dir, "..data")))
	must(os.Symlink(filepath.Join("..data", "mcp.json"), d.user))
	d.begin(func(o *supervisor.FollowOptions) { o.Poll = time.Hour })
	d.becomes("a")
	must(os.Symlink("..2", filepath.Join(dir, "..tmp")))
	must(os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	d.becomes("b")
}

// Without a watcher that tells, the files are read every so often.
func TestFilesAreReadWithoutEvents(t *testing.T) {
	d := newDesktop(t, "a")
	far := filepath.Join(t.TempDir(), "far")
	d.write(filepath.Join(far, "f", "mcp.json"), entries(), false)
	d.options.Files = []string{filepath.Join(far, "f", "mcp.json")}
	d.begin(func(o *supervisor.FollowOptions) { o.Poll = 20 * time.Millisecond })
	// A folder on the way is replaced, of which no watcher of the folder below tells.
	d.write(filepath.Join(far+"2", "f", "mcp.json"), entries("a"), false)
	if err := os.Rename(far, far+"1"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(far+"2", far); err != nil {
		t.Fatal(err)
	}
	d.becomes("a")
}

// A server of a project file starts when the person approves it, in another process, and keeps the approved spec when it changes.
func TestALaterApprovalStartsTheServer(t *testing.T) {
	d := newDesktop(t, "a")
	file := filepath.Join(d.project, ".mcp.json")
	d.write(file, entries("a"), false)
	d.begin()
	eventually(t, "it is held", func() bool { return status(t, d.m, "a").Class == messages.ClassDenied })
	approve := func() {
		found, err := discover.Load(d.options)
		if err == nil {
			err = found.Approvals.Approve(found.Set, "a")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	approve()
	d.becomes("a")
	before := status(t, d.m, "a").Epoch
	d.write(file, entries(`a "name": "a"`), true)
	eventually(t, "a remark", func() bool { return strings.Contains(status(t, d.m, "a").Remark, "mcpvisor approve a") })
	if st := status(t, d.m, "a"); st.Status != messages.Connected || st.Epoch != before {
		t.Errorf("an approved server whose entry changed: %+v", st)
	}
	approve()
	eventually(t, "the change", func() bool {
		st := status(t, d.m, "a")
		return st.Status == messages.Connected && st.Epoch != before && st.Remark == ""
	})
}

func TestReloadSaysWhatItCameTo(t *testing.T) {
	d := newDesktop(t, "a", "b", "c")
	if _, err := start(t, supervisor.Config{}, nil).Reload(t.Context()); messages.ClassOf(err) != messages.ClassUnsupported {
		t.Errorf("a manager that follows nothing: %v", err)
	}
	d.write(d.user, entries("a", "b", "c"), false)
	d.begin(func(o *supervisor.FollowOptions) { o.Quiet, o.Most, o.Poll = time.Hour, time.Hour, time.Hour })
	d.becomes("a", "b", "c")
	d.write(d.user, entries(`a "disabled": true`, "c")[:20], false)
	res, err := d.m.Reload(t.Context())
	if err != nil || !res.None() || len(res.Problems) != 1 || res.Problems[0].Line != 1 || res.Problems[0].Col == 0 {
		t.Errorf("a broken file: %+v %v", res, err)
	}
	d.write(d.user, entries(`a "disabled": true`, "c", "b 7"), false)
	d.write(d.user, `{"mcpServers": {"a": {"type": "sdk", "disabled": true}, "b": {}, "c": {"type": "sdk"}, "n": {"type": "sdk", "name": "a"}}}`, false)
	res, err = d.m.Reload(t.Context())
	if err != nil || !slices.Equal(res.Added, []string{"n"}) || !slices.Equal(res.Adjusted, []string{"a"}) ||
		!slices.Equal(res.Kept, []string{"b", "c"}) || res.Remarks["b"] == "" || len(res.Removed)+len(res.Replaced) > 0 {
		t.Errorf("%+v %v", res, err)
	}
	d.becomes("b", "c", "n")
	if _, err := supervisor.Follow(t.Context(), d.m, supervisor.FollowOptions{Dir: d.project}); err == nil {
		t.Error("a manager follows two sets of files")
	}
	d.follow.Close()
	if _, err := d.follow.Reload(t.Context()); !errors.Is(err, supervisor.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestABadOnReloadEndsNothing: whether the function panics, ends its goroutine or blocks, the files are followed and the Follower can be
// closed.
func TestABadOnReloadEndsNothing(t *testing.T) {
	for name, misbehave := range map[string]func(){"panic": func() { panic("ouch") }, "goexit": runtime.Goexit, "block": func() { select {} }} {
		t.Run(name, func(t *testing.T) {
			d := newDesktop(t, "a", "b")
			d.write(d.user, entries("a"), false)
			var calls, ready atomic.Int32
			d.begin(func(o *supervisor.FollowOptions) {
				o.Quiet, o.Most, o.Poll = time.Hour, time.Hour, time.Hour
				o.OnReload = func(supervisor.ReloadResult) {
					if ready.Load() > 0 {
						calls.Add(1)
						misbehave()
					}
				}
			})
			ready.Store(1)
			d.write(d.user, entries("a", "b"), false)
			if name == "block" {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { // the test waits until the function is called, and not for its end
					for calls.Load() == 0 {
						time.Sleep(time.Millisecond)
					}
					cancel()
				}()
				if _, err := d.m.Reload(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("blocked: %v", err)
				}
			} else if res, err := d.m.Reload(t.Context()); err != nil || len(res.Added) != 1 || calls.Load() != 1 {
				t.Errorf("%+v, %v after %d calls", res, err, calls.Load())
			}
			d.becomes("a", "b")
			if name != "block" {
				d.write(d.user, entries("b"), false)
				if res, err := d.m.Reload(t.Context()); err != nil || len(res.Removed) != 1 {
					t.Errorf("the second time: %+v, %v", res, err)
				}
			}
			d.follow.Close() // a hang is the test's timeout
		})
	}
}

// TestReloadStorm rewrites a file 100 times, half of the contents broken, in place and by rename, while calls go on: servers that
// no content changes lose neither a call nor their connection, and in the end the last valid file is in force.
func TestReloadStorm(t *testing.T) {
	seeds.Shows(t, "004.f.hot-reload")
	d := newDesktop(t, "s1", "s2", "s3", "v", "w")
	all := func(i int) string {
		if i%3 == 0 {
			return entries("s1", "s2", "s3", fmt.Sprintf(`v "callTimeout": "%ds"`, 10+i))
		}
		return entries("s3", "s1", "s2", fmt.Sprintf(`v "maxMessage": %d`, 1<<20+i), "w")
	}
	d.write(d.user, all(0), false)
	d.begin(func(o *supervisor.FollowOptions) { o.Quiet, o.Most = 20*time.Millisecond, 100*time.Millisecond })
	d.becomes("s1", "s2", "s3", "v")
	steady := []string{"s1", "s2", "s3"}
	before := map[string]uint64{}
	for _, name := range steady {
		before[name] = status(t, d.m, name).Epoch
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var calls atomic.Int64
	var callers sync.WaitGroup
	for _, name := range append(steady, "v") {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := d.m.CallServerTool(t.Context(), name, "x", nil)
				calls.Add(1)
				if err != nil && (name != "v" || !errors.Is(err, supervisor.ErrNotSent)) {
					t.Errorf("a call of %s: %v", name, err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	for i := 1; i <= 100; i++ {
		text := all(i)
		if i%2 == 1 {
			text = []string{text[:len(text)/2], "\x00\x01", "", "[1]", strings.Replace(text, `"v": {"type": "sdk"`, `"v": {"type": 5`, 1)}[i%5]
		}
		d.write(d.user, text, i%4 < 2)
		time.Sleep(20 * time.Millisecond)
	}
	d.becomes("s1", "s2", "s3", "v", "w")
	eventually(t, "the last file", func() bool { return status(t, d.m, "v").Config.MaxMessage == 1<<20+100 })
	stop()
	callers.Wait()
	for _, name := range steady {
		if st := status(t, d.m, name); st.Epoch != before[name] || st.Restarts != 0 {
			t.Errorf("%s lost its connection: epoch %d before, %d after", name, before[name], st.Epoch)
		}
	}
	if calls.Load() == 0 {
		t.Error("nothing was called")
	}
	t.Logf("%d calls, %d connections of v", calls.Load(), d.fakes["v"].dials.Load())
}

// A hundred reloads that change others leave a server's call in flight alone.
func TestACallOutlivesAHundredReloads(t *testing.T) {
	d := newDesktop(t, "a", "b")
	release := make(chan struct{})
	d.fakes["a"].onCall = func(context.Context, string, json.RawMessage) (string, error) { <-release; return "done", nil }
	d.write(d.user, entries("a", "b"), false)
	d.begin()
	d.becomes("a", "b")
	before := status(t, d.m, "a").Epoch
	ended := make(chan error, 1)
	go func() {
		_, err := d.m.CallServerTool(t.Context(), "a", "x", nil)
		ended <- err
	}()
	eventually(t, "the call runs", func() bool { return d.fakes["a"].calls.Load() > 0 })
	for i := range 100 {
		d.write(d.user, entries(fmt.Sprintf(`b "maxMessage": %d`, 1<<20+i), fmt.Sprintf(`a "callTimeout": "%ds"`, 60+i)), i%2 == 0)
		if _, err := d.m.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-ended; err != nil || status(t, d.m, "a").Epoch != before {
		t.Errorf("%v; epoch %d before, %d after", err, before, status(t, d.m, "a").Epoch)
	}
}
