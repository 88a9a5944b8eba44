package score

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

var processCases = []Case{
	{Name: "an ordinary day", Over: "stdio", play: ordinaryDay,
		Story: "A good server is connected, listed, called and closed."},
	{Name: "a silent server", Over: "stdio", Faults: []string{"P4"}, play: silentServer,
		Story: "One server never answers anything. Another one, asked for meanwhile, must not wait for it."},
	{Name: "silence about the era", Over: "stdio", Faults: []string{"P5"}, play: silentAboutEra,
		Story: "An older server says nothing to the question for the era, and answers initialize."},
	{Name: "death of the question for the era", Over: "stdio", Faults: []string{"P5"}, play: diesOfEra,
		Story: "An older server exits when its first message is not initialize."},
	{Name: "noise on standard output", Over: "stdio", Faults: []string{"P6"}, play: noise,
		Story: "A server prints a banner and log lines to standard output."},
	{Name: "a flood on standard output", Over: "stdio", Faults: []string{"P6", "I9"}, play: flood,
		Story: "After its list a server prints log lines without end. The client's memory and its other server must not suffer."},
	{Name: "a full standard error", Over: "stdio", Faults: []string{"P7"}, play: fullStderr,
		Story: "A server writes 4 MiB to standard error before it reads, and stands still if nobody drains."},
	{Name: "a huge line", Over: "stdio", Faults: []string{"P8"}, play: hugeLine,
		Story: "One result is a line of 32 MiB. It may be given or refused; the next call must work."},
	{Name: "a line without end", Over: "stdio", Faults: []string{"P8", "I9"}, play: endlessLine,
		Story: "After its list a server writes a line that never ends."},
	{Name: "a crash", Over: "stdio", Faults: []string{"P12"}, play: crash,
		Story: "A server crashes in a call. It must be started again, by itself or for the next call."},
	{Name: "a crash loop", Over: "stdio", Faults: []string{"P12"}, play: crashLoop,
		Story: "A server exits whenever it has answered its list. It must not be started without a pause."},
	{Name: "no such program", Over: "stdio", Faults: []string{"P14"}, play: missing,
		Story: "The command of a server does not exist."},
	{Name: "an unknown version", Over: "stdio", Faults: []string{"R16"}, play: wrongVersion,
		Story: "A server answers initialize with a version that nobody speaks. It must not be left running."},
	{Name: "a launcher's tree", Over: "stdio", Faults: []string{"P2"}, play: launcher,
		Story: "The server is a grandchild, as under npx. Closed, nothing of the tree may be left."},
	{Name: "a child that outlives its server", Over: "stdio", Faults: []string{"P2"}, play: grandchild,
		Story: "The server has started a process that holds its output open and does not end with it."},
	{Name: "deaf to every signal", Over: "stdio", Faults: []string{"P3"}, play: ignoresSignals,
		Story: "A server ignores the end of its input and SIGTERM."},
	{Name: "the client is killed", Over: "stdio", Faults: []string{"P1"}, play: clientKilled,
		Story: "The client dies of SIGKILL, with a good server, a launcher's tree and a server that ignores the end of its input."},
	{Name: "secrets of the environment", Over: "stdio", Faults: []string{"X3"}, play: secrets,
		Story: "A variable of the client's environment, declared for no server, must not reach one."},
	{Name: "sixty servers", Over: "stdio", Faults: []string{"P13", "I12"}, alone: true, play: sixty,
		Story: "Sixty servers are asked for at once, each is called, and all are left."},
}

func ordinaryDay(a *arena) {
	p := a.server("good")
	a.connects(p)
	list := a.list(p)
	a.must(slices.Contains(list.Tools, "echo"), "its tools are listed", "%d tools; %s", len(list.Tools), list.why())
	echo, ok := a.echoes(p, "hello")
	a.must(ok, "a call is answered", "%s", echo.why())
	closed := a.close(p)
	a.must(closed.OK && closed.took < enough, "it is closed", "%s", closed.why())
	a.nothingLeft("no process is left")
}

// nothingLeft is the point for a clean house, where processes can be counted.
func (a *arena) nothingLeft(must string) {
	if !counts {
		return
	}
	left, ok := a.gone(10 * time.Second)
	a.must(ok, must, "%d still run 10s later", len(left))
}

func silentServer(a *arena) {
	silent, good := a.server("silent"), a.server("good")
	waiting := a.connecting(silent, 6*time.Second)
	a.pause(500 * time.Millisecond)
	got := a.connect(good)
	a.must(got.OK, "the other server connects", "%s", got.why())
	_, ok := a.echoes(good, "meanwhile")
	a.must(ok, "the other server is called", "no answer")
	end := <-waiting
	a.must(!end.OK && !end.hung, "the connect to the silent one ends with an error", "%s", end.why())
}

func silentAboutEra(a *arena) {
	p := a.server("silent-on-probe")
	a.connects(p)
	_, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "no answer")
}

func diesOfEra(a *arena) {
	p := a.server("dies-on-probe")
	a.connects(p)
	_, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "no answer")
}

func noise(a *arena) {
	p := a.server("noise")
	a.connects(p)
	right := 0
	for i := range 5 {
		if _, ok := a.echoes(p, fmt.Sprint(i)); ok {
			right++
		}
	}
	a.must(right == 5, "five calls are answered", "%d are", right)
	a.must(len(a.starts(p)) == 1, "it is not restarted", "it is")
}

// greedy is more memory than a client needs for any server here.
const greedy = 512 << 20

// modest watches the client's memory for a while. A client that takes too much is ended before it takes the machine's.
func (a *arena) modest(d time.Duration) {
	if !counts {
		return
	}
	const must = "the client stays below 512 MiB of memory"
	for end := time.Now().Add(d); time.Now().Before(end); a.pause(20 * time.Millisecond) {
		if m := memory(a.driver.cmd.Process.Pid); m > greedy {
			a.must(false, must, "it took %d MiB and was ended", greedy>>20)
			a.driver.kill()
			return
		}
	}
	a.must(true, must, "")
}

func flood(a *arena) {
	p, other := a.server("flood"), a.server("good")
	a.connect(other)
	waiting := a.connecting(p, 10*time.Second)
	<-waiting
	a.list(p) // what follows the list is the flood
	a.modest(5 * time.Second)
	_, ok := a.echoes(other, "x")
	a.must(ok, "the other server is called", "no answer")
	a.close(p)
	a.endsSoon(p)
}

// endsSoon is the point for a server that was closed.
func (a *arena) endsSoon(p *peer) {
	if !counts {
		return
	}
	ok := a.within(15*time.Second, func() bool { return !a.lives(p) })
	a.must(ok, "its process is gone after close", "it still runs 15s later")
}

// lives reports whether a process of a server runs.
func (a *arena) lives(p *peer) bool { return len(processesWith(p.records)) > 0 }

func fullStderr(a *arena) {
	p := a.server("stderr-flood")
	a.connects(p)
	_, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "no answer")
}

func hugeLine(a *arena) {
	p := a.server("huge-line")
	a.connect(p)
	got := a.call(p, "huge", 30*time.Second, map[string]any{})
	a.must(!got.hung, "the call ends", "%s", got.why())
	ok := a.within(enough, func() bool { _, ok := a.echoes(p, "after it"); return ok })
	a.must(ok, "the next call is answered", "no answer within %s", enough)
	a.must(len(a.starts(p)) == 1, "the server is not restarted for it", "it is")
}

func endlessLine(a *arena) {
	p, other := a.server("endless-line"), a.server("good")
	a.connect(other)
	<-a.connecting(p, 10*time.Second)
	a.list(p)
	a.modest(6 * time.Second)
	_, ok := a.echoes(other, "x")
	a.must(ok, "the other server is called", "no answer")
}

func crash(a *arena) {
	p := a.server("good")
	a.connect(p)
	got := a.call(p, "crash", 30*time.Second, map[string]any{"code": 3})
	a.must(!got.OK && got.took < 10*time.Second, "the call ends when the process does", "%s after %s", got.why(), got.took.Round(time.Second))
	ok := a.within(enough, func() bool { _, ok := a.echoes(p, "again"); return ok })
	a.must(ok, "a later call is answered", "none within %s", enough)
	if counts {
		none := a.within(5*time.Second, func() bool { return zombies(a.driver.cmd.Process.Pid) == 0 })
		a.must(none, "the dead process is reaped", "it is still a zombie")
	}
}

func crashLoop(a *arena) {
	p := a.server("exits-after-list")
	<-a.connecting(p, 5*time.Second)
	for range 10 {
		a.list(p)
		a.pause(time.Second)
	}
	starts := a.starts(p)
	a.must(len(starts) > 0, "it is started", "it is not")
	a.must(len(starts) <= 12, "it is started at most 12 times in 10s", "%d starts", len(starts))
	hasty := 0
	for i := 1; i < len(starts); i++ {
		if time.Duration(starts[i]-starts[i-1]) < 100*time.Millisecond {
			hasty++
		}
	}
	a.must(hasty == 0, "there are at least 100ms between two starts", "%d times there were less", hasty)
}

func missing(a *arena) {
	p := a.server("good")
	p.where.Command = filepath.Join(a.dir, "no-such-program")
	got := a.connect(p)
	a.must(!got.OK && !got.hung && got.took < 10*time.Second, "connect ends with an error", "%s", got.why())
	a.must(strings.Contains(got.Error, "no-such-program"), "the error names the program", "%s", got.why())
}

func wrongVersion(a *arena) {
	p := a.server("wrong-version")
	got := a.connect(p)
	a.must(!got.OK && !got.hung, "connect ends with an error", "%s", got.why())
	a.nothingLeft("its process does not stay")
}

func launcher(a *arena) {
	p := a.server("launcher", "depth=2")
	a.connects(p)
	a.close(p)
	a.nothingLeft("nothing of the tree is left after close")
}

func grandchild(a *arena) {
	p := a.server("grandchild")
	a.connects(p)
	closed := a.close(p)
	a.must(!closed.hung && closed.took < enough, "close ends", "%s", closed.why())
	a.nothingLeft("the child is gone after close")
}

func ignoresSignals(a *arena) {
	p := a.server("ignores-signals")
	a.connects(p)
	closed := a.close(p)
	a.must(!closed.hung && closed.took < enough, "close ends", "%s", closed.why())
	a.nothingLeft("its process is killed")
}

func clientKilled(a *arena) {
	good, tree, stubborn := a.server("good"), a.server("launcher", "depth=2"), a.server("ignores-eof")
	for _, p := range []*peer{good, tree, stubborn} {
		a.connects(p)
	}
	if !counts {
		return
	}
	a.driver.kill()
	for _, c := range []struct {
		p    *peer
		must string
	}{{good, "the good server ends"}, {tree, "the launcher's tree ends"}, {stubborn, "the stubborn server ends"}} {
		ok := a.within(12*time.Second, func() bool { return !a.lives(c.p) })
		a.must(ok, c.must, "it still runs 12s later")
	}
}

func secrets(a *arena) {
	p := a.server("good")
	a.connect(p)
	got := a.call(p, "env", enough, map[string]any{"name": secretName})
	a.must(got.OK && a.count(p, "tools/call") == 1, "the server is asked", "%s", got.why())
	a.must(got.OK && textOf(got) != secret, "the server does not know the secret", "it does")
}

func sixty(a *arena) {
	const many = 60
	all := make([]*peer, many)
	answers := make([]answer, many)
	var wait sync.WaitGroup
	for i := range all {
		all[i] = a.server("good")
		waiting := a.connecting(all[i], 2*time.Minute)
		wait.Go(func() { answers[i] = <-waiting })
	}
	wait.Wait()
	connected := 0
	for _, got := range answers {
		if got.OK {
			connected++
		}
	}
	a.must(connected == many, "all connect", "%d do", connected)
	right := 0
	for i, p := range all {
		if _, ok := a.echoes(p, fmt.Sprint(i)); ok {
			right++
		}
	}
	a.must(right == many, "all are called", "%d answer", right)
	a.must(a.driver.quit(40*time.Second), "the client ends when it is told to quit", "it still runs 40s later")
	a.nothingLeft("no process is left")
}
