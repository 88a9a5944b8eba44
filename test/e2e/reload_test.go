package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// fileRewriter rewrites files in the ways in which editors, programs and Kubernetes do.
type fileRewriter struct {
	t    *testing.T
	file string // a file of its own
	link string // a file that is a link into ..data, which is a link to a folder
	n    int
}

func (s *fileRewriter) failOn(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// rewriteWays are how the file comes to have a text. Each leaves it there.
func (s *fileRewriter) rewriteWays() []func(text string) {
	write := func(path, text string) { s.failOn(os.WriteFile(path, []byte(text), 0o600)) }
	return []func(string){
		func(text string) { write(s.file, text) },
		func(text string) { // a new file in the place of the old one
			write(s.file+".new", text)
			s.failOn(os.Rename(s.file+".new", s.file))
		},
		func(text string) { // in two halves
			write(s.file, text[:len(text)/2])
			time.Sleep(time.Millisecond)
			write(s.file, text)
		},
		func(text string) { // gone, and there again
			s.failOn(os.Remove(s.file))
			write(s.file, text)
		},
		func(text string) { // unreadable, unless we are root
			s.failOn(os.Chmod(s.file, 0))
			s.failOn(os.Chmod(s.file, 0o600))
			write(s.file, text)
		},
		func(text string) { // and touched
			write(s.file, text)
			s.failOn(os.Chtimes(s.file, time.Now(), time.Now()))
		},
	}
}

// swapFolder replaces the folder behind the link.
func (s *fileRewriter) swapFolder(text string) {
	if runtime.GOOS == "windows" { // links need rights there
		s.failOn(os.WriteFile(s.link, []byte(text), 0o600))
		return
	}
	s.n++
	dir := filepath.Dir(s.link)
	folder := fmt.Sprintf("..%d", s.n)
	s.failOn(os.Mkdir(filepath.Join(dir, folder), 0o700))
	s.failOn(os.WriteFile(filepath.Join(dir, folder, "mcp.json"), []byte(text), 0o600))
	s.failOn(os.Symlink(folder, filepath.Join(dir, "..tmp")))
	s.failOn(os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	if s.n == 1 {
		s.failOn(os.Symlink(filepath.Join("..data", "mcp.json"), s.link))
	}
}

// A file is rewritten a hundred times in every way, half of them broken, while sixteen callers call real processes. Who is not
// changed, or changed in what no connection depends on, loses neither a call nor its process; who is replaced loses none that
// was sent; and in the end the last valid file is in force.
func TestAReloadStormCostsNobodyAnything(t *testing.T) {
	seeds.Shows(t, "004.f.hot-reload")
	checkLeaks(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p", "map"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := &fileRewriter{t: t, file: filepath.Join(dir, "p", "servers.json"), link: filepath.Join(dir, "map", "mcp.json")}
	good := fixtureSpec("good")
	entry := func(more object) object {
		e := object{"command": good.Command, "args": good.Args}
		for k, v := range more {
			e[k] = v
		}
		return e
	}
	text := func(i int) string {
		return asJSON(t, object{"mcpServers": object{
			"untouched": entry(nil), "adjusted": entry(object{"callTimeout": fmt.Sprintf("%ds", 60+i)}),
			"replaced": entry(object{"env": object{"N": fmt.Sprint(i - i%20)}}),
		}})
	}
	linked := func(i int) string {
		return asJSON(t, object{"mcpServers": object{"linked": entry(object{"callTimeout": fmt.Sprintf("%ds", 60+i)})}})
	}
	s.rewriteWays()[0](text(0))
	s.swapFolder(linked(0))
	reading, err := discover.Read(discover.Options{Dir: filepath.Join(dir, "p"), Files: []string{s.file},
		Paths: discover.Paths{Home: dir, User: s.link}})
	if err != nil {
		t.Fatal(err)
	}
	m := startManager(t, supervisor.Config{})
	// A file that is gone for longer than Grace is gone: on a busy machine between two lines of this test, too.
	f, err := supervisor.Follow(t.Context(), m, supervisor.FollowOptions{Reading: &reading, Quiet: 20 * time.Millisecond,
		Most: 100 * time.Millisecond, Grace: bound})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	steady := []string{"untouched", "adjusted", "linked"}
	awaitConnected(t, m, append(steady, "replaced")...)
	before := map[string]int{}
	for _, name := range steady {
		before[name] = statusOf(t, m, name).PID
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	type tally struct{ results, notSent, others atomic.Int64 }
	outcomes := map[string]*tally{"untouched": {}, "adjusted": {}, "linked": {}, "replaced": {}}
	var callers sync.WaitGroup
	for name, count := range outcomes {
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					_, err := m.CallServerTool(t.Context(), name, "echo", object{"text": "x"})
					switch {
					case err == nil:
						count.results.Add(1)
					case errors.Is(err, supervisor.ErrNotSent):
						count.notSent.Add(1)
					default:
						count.others.Add(1)
						t.Errorf("%s: %v", name, err)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	ways := s.rewriteWays()
	for i := 1; i <= 100; i++ {
		now, other := text(i), linked(i)
		if i%2 == 1 { // broken
			now = []string{now[:len(now)/3], "", "[1]", "\x00\x01", strings.Replace(now, `"untouched"`, `untouched`, 1)}[i/2%5]
			other = other[:len(other)-1]
		}
		ways[i/2%len(ways)](now)
		if i%5 < 2 || i == 100 {
			s.swapFolder(other)
		}
		time.Sleep(10 * time.Millisecond)
	}
	eventually(t, "the last valid files are in force", func() bool {
		return time.Duration(statusOf(t, m, "adjusted").Config.CallTimeout) == 160*time.Second &&
			time.Duration(statusOf(t, m, "linked").Config.CallTimeout) == 160*time.Second
	})
	awaitConnected(t, m, append(steady, "replaced")...)
	eventually(t, "the replaced one is the last that was written", func() bool {
		res, err := m.CallServerTool(t.Context(), "replaced", "env", object{"name": "N"})
		return err == nil && res.Text() == "100"
	})
	stop()
	callers.Wait()
	for name, count := range outcomes {
		results, notSent, others := count.results.Load(), count.notSent.Load(), count.others.Load()
		t.Logf("%s: %d results, %d not sent, %d others", name, results, notSent, others)
		if results == 0 || others > 0 || name != "replaced" && notSent > 0 {
			t.Errorf("%s: %d results, %d not sent, %d others", name, results, notSent, others)
		}
	}
	for _, name := range steady {
		if st := statusOf(t, m, name); st.PID != before[name] || st.Restarts != 0 {
			t.Errorf("%s: process %d before, %d after, %d restarts", name, before[name], st.PID, st.Restarts)
		}
	}
	if res, err := f.Reload(t.Context()); err != nil || !res.None() || len(res.Problems) > 0 {
		t.Errorf("%+v, %v", res, err)
	}
}
