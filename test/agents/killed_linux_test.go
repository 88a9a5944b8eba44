package agents

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
)

var kills = flag.Int("kills", 2, "how often server, daemon and agent are killed, and the daemon sleeps, each")

// outcomes counts how calls ended, by the words of the contract.
type outcomes struct {
	mu      sync.Mutex // guards the maps
	byWord  map[string]int
	endings map[string]string // of each call
}

func (o *outcomes) note(call, text string) {
	word := "result"
	for _, outcome := range []string{"not-sent", "rejected", "unknown"} {
		if strings.Contains(text, `"mcpvisor/outcome":"`+outcome+`"`) {
			word = outcome
		}
	}
	switch {
	case strings.HasPrefix(text, "error"):
		word = "unknown" // the client itself lost its connection
	case word == "result" && !strings.Contains(text, "appended"):
		word = "other: " + text
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byWord[word]++
	o.endings[call] = word
}

// worker is one agent that calls without pause, and is started again when its bridge was killed.
func worker(t *testing.T, p *place, number, sdk int, file string, seen *outcomes, ended *atomic.Bool) {
	for n := 0; !ended.Load(); {
		c := newForeign(t, p.dir)
		where := members{"sdk": sdk, "era": "auto", "command": command(t), "args": []string{"-C", p.dir, "connect"}, "env": p.own(t), "timeoutMs": 60_000}
		if r, ok := c.reply("connect", where); !ok || r.Error != nil {
			continue
		}
		for !ended.Load() {
			n++
			call := fmt.Sprintf("%d.%d", number, n)
			r, ok := c.reply("call", members{"name": "good__append", "args": members{"file": file, "line": call}})
			text := string(r.Value)
			if r.Error != nil || !ok {
				text = fmt.Sprintf("error %v", r.Error)
			}
			if seen.note(call, text); strings.HasPrefix(text, "error") {
				break // its bridge is gone
			}
		}
		if ended.Load() {
			c.reply("close", nil)
		}
		_ = c.in.Close()
	}
}

// reply performs a command; false if no reply came.
func (c *foreign) reply(do string, m members) (reply, bool) {
	select {
	case r := <-c.begin(do, m):
		return r, true
	case <-time.After(patience):
		return reply{}, false
	}
}

// TestKillsUnderLoad kills the server, the daemon and bridges in turn under agents that call without pause, and stops the daemon as a machine
// that sleeps does: no call runs twice, a call that is said not to have been sent has not run, one with a result has, and no process
// is left.
func TestKillsUnderLoad(t *testing.T) {
	t.Parallel()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"good": map[string]any{"command": built.Fixture(t), "args": servers.Args("good")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, "{}")
	p.userServers(string(config))
	file := filepath.Join(p.dir, "ran")
	seen := &outcomes{byWord: map[string]int{}, endings: map[string]string{}}
	var ended atomic.Bool
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { worker(t, p, i, 1+i%2, file, seen, &ended) })
	}
	results := func() int {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return seen.byWord["result"]
	}
	// goesOn waits until agents get results again.
	goesOn := func(after string) {
		t.Helper()
		begin, before := time.Now(), results()
		for first := false; results() < before+40; {
			if !first && results() > before+4 { // each of the four may have had one on its way
				first = true
				t.Logf("%s: results again after %s", after, time.Since(begin).Round(time.Millisecond))
			}
			if time.Since(begin) > patience {
				ended.Store(true)
				t.Fatalf("after %s agents get no results", after)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	goesOn("the start")
	for range *kills {
		for _, victim := range []string{"the server", "the daemon", "an agent's bridge"} {
			var pids []int
			switch victim {
			case "the server":
				pids = p.pids(servers.Marker + "\x00good")
			case "the daemon":
				pids = []int{p.daemon()}
			default:
				pids = p.pids("\x00connect\x00")
			}
			if len(pids) == 0 {
				t.Errorf("%s has no process", victim)
				continue
			}
			if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
				t.Errorf("%s: %v", victim, err)
			}
			goesOn("the end of " + victim)
		}
		pid := p.daemon()
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		goesOn("the sleep of the daemon")
		if after := p.daemon(); after != pid {
			t.Errorf("after its sleep the daemon is process %d, not %d", after, pid)
		}
	}
	ended.Store(true)
	all.Wait()
	if out, err := p.run("down"); err != nil {
		t.Errorf("down: %v\n%s", err, out)
	}
	judge(t, p, file, seen)
}

// daemon returns the process of the place's daemon.
func (p *place) daemon() int {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, v := range p.env {
			if dir, ok := strings.CutPrefix(v, "XDG_RUNTIME_DIR="); ok {
				text, _ := os.ReadFile(filepath.Join(dir, "mcpvisor", "daemon.lock")) // it comes with the daemon
				if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 1 && syscall.Kill(pid, 0) == nil {
					return pid
				}
			}
		}
	}
	p.t.Fatal("there is no daemon")
	return 0
}

// judge compares what has run with how the calls ended.
func judge(t *testing.T, p *place, file string, seen *outcomes) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for line := range strings.Lines(string(text)) {
		ran[strings.TrimSpace(line)]++
	}
	for call, times := range ran {
		if times > 1 {
			t.Errorf("call %s ran %d times", call, times)
		}
	}
	for call, ending := range seen.endings {
		switch {
		case ending == "result" && ran[call] == 0:
			t.Errorf("call %s has a result and did not run", call)
		case ending == "not-sent" && ran[call] > 0:
			t.Errorf("call %s is said not to have been sent, and ran", call)
		case strings.HasPrefix(ending, "other"):
			t.Errorf("call %s ended with %s", call, ending)
		}
	}
	var left []int
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if left = slices.Concat(p.pids(servers.Marker), p.pids("mcpvisor")); len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("the processes %v are left", left)
	}
	t.Logf("%d calls: %v", len(seen.endings), seen.byWord)
}
