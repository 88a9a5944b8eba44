package supervisor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A list that is as it was costs no publication: the catalog's snapshot is the same one, of the same generation, and no
// watcher is told of tools, after the server's own announcement as after a command, and after a reconnect neither has a
// definition been read or kept twice.
func TestAnUnchangedListIsNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := make([]string, 200)
		for i := range names {
			names[i] = fmt.Sprint("tool", i)
		}
		f := newFake(names...)
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		before, lists := m.Tools(), f.lists.Load()
		watcher := m.Watch(100)
		defer watcher.Close()

		f.setTools(names...) // says that it has changed, and has not
		time.Sleep(5 * time.Second)
		if err := m.Refresh(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := f.lists.Load() - lists; n != 2 {
			t.Errorf("it was listed %d times", n)
		}
		if now := m.Tools(); now != before {
			t.Errorf("generation %d became %d", before.Generation(), now.Generation())
		}
		f.setTools(append([]string{"another"}, names...)...)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		e, err := watcher.Next(t.Context())
		if err != nil || e.Kind != messages.EventTools || e.Generation != before.Generation()+1 {
			t.Errorf("the first thing to be told is %+v", e)
		}

		changed := m.Tools()
		if err := m.Reconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		second := m.Tools()
		for _, was := range changed.Server("a") {
			now, ok := second.LookupTool("a", was.Tool.Name)
			if !ok || now.Tool != was.Tool || now.Epoch == was.Epoch {
				t.Fatalf("%s was defined anew: %+v", was.Name, now)
			}
		}
	})
}

// A list that was announced and has not changed doubles the time for which the next announcement waits, and no more.
func TestOneFutileListSlowsTheNextALittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("one")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		f.setTools("one") // says that it has changed, and has not
		time.Sleep(200 * time.Millisecond)
		f.setTools("one", "two")
		time.Sleep(300 * time.Millisecond)
		if n := m.Tools().Len(); n != 2 {
			t.Errorf("0.3 s after a second announcement the catalog has %d tools: the first one was futile, which doubles 50 ms once", n)
		}
	})
}

// Who has refreshed a server reads its new list, also when the registry is slow.
func TestARefreshedListIsPublishedWhenRefreshReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("old")
		m := start(t, supervisor.Config{ActorOptions: slowRegistry}, map[string]*fake{"a": f})
		settled(t, m)
		f.set(func(f *fake) { f.tools = []string{"new"} })
		if err := m.Refresh(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if got := names(m); len(got) != 1 || got[0] != "mcp__a__new" {
			t.Errorf("after a refresh the tools are %v", got)
		}
	})
}

// A burst of changes ends with its connection: a list of the next one waits, as the first one did, until the server is quiet.
func TestABurstOfChangesEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		f.setTools("x", "y")
		synctest.Wait()
		f.kill() // before the burst has ended
		time.Sleep(10 * time.Second)
		settled(t, m)
		lists := f.lists.Load()
		for range 5 {
			f.setTools("x", "y", "z")
			time.Sleep(20 * time.Millisecond)
			if f.lists.Load() != lists {
				t.Fatal("it was listed before it was quiet")
			}
		}
		time.Sleep(time.Second)
		if n := f.lists.Load() - lists; n != 1 || m.Tools().Len() != 3 {
			t.Errorf("it was listed %d times for one burst, and %d tools are seen", n, m.Tools().Len())
		}
	})
}
