package sim

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// module is the path with which the names of this module's functions begin.
const module = "github.com/mcpvisor/mcpvisor/"

// goroutine describes one goroutine of a dump.
type goroutine struct {
	// state is the reason why it does not run ("sync.Mutex.Lock", "chan send"), or "running" or "runnable".
	state string
	// durable is set if synctest lets time pass while it waits.
	durable bool
	bubble  string
	frames  []frame
	// lock is the address of the mutex that it waits for, empty if the dump does not show it.
	lock string
}

// frame is one call of a stack. Stacks list the innermost call first.
type frame struct {
	// function lacks the module's path, for functions of this module.
	function string
	// inModule is set for functions of this module outside of this package.
	inModule bool
	// position is file and line, as in pool.go:88.
	position string
}

func (f frame) String() string { return f.function + " (" + f.position + ")" }

// receiverType returns the type of a method, as in supervisor/restart.(*pool), and an empty text for a function.
func (f frame) receiverType() string {
	i := strings.Index(f.function, ").")
	if i < 0 {
		return ""
	}
	return f.function[:i+1]
}

// parseDump reads the text that runtime.Stack writes.
func parseDump(text string) []goroutine {
	var all []goroutine
	for s := range strings.SplitSeq(text, "\n\n") {
		if g, ok := parseGoroutine(s); ok {
			all = append(all, g)
		}
	}
	return all
}

// parseGoroutine reads one stack. It returns false for a text that is none.
func parseGoroutine(stack string) (g goroutine, ok bool) {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	_, reasons, found := strings.Cut(lines[0], "[")
	if !found || !strings.HasPrefix(lines[0], "goroutine ") {
		return g, false
	}
	reasons, _, _ = strings.Cut(reasons, "]")
	g.state, _, _ = strings.Cut(reasons, ", ")
	g.state, g.durable = strings.CutSuffix(g.state, " (durable)")
	g.bubble = bubbleOf([]byte(lines[0]))
	// Each call takes two lines, the function and its position; lines with a tab belong to the call before.
	for i := 1; i+1 < len(lines); i++ {
		if strings.HasPrefix(lines[i], "\t") || strings.HasPrefix(lines[i], "created by ") {
			continue
		}
		name, args := lines[i], ""
		if at := strings.LastIndexByte(name, '('); at > 0 {
			name, args = name[:at], strings.Trim(name[at:], "()?")
		}
		// The first argument of lockSlow is the mutex.
		if strings.HasSuffix(name, "sync.(*Mutex).lockSlow") {
			g.lock = args
		}
		f := frame{function: name}
		if short, ours := strings.CutPrefix(name, module); ours {
			f.function, f.inModule = short, !strings.HasPrefix(short, "test/chaos/sim.")
		}
		file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		f.position = path.Base(strings.ReplaceAll(file, `\`, "/"))
		g.frames = append(g.frames, f)
	}
	return g, true
}

// canProceed reports whether a goroutine may go on by itself: it runs, or it waits for something outside of the bubble.
func (g goroutine) canProceed() bool {
	switch g.state {
	case "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "semacquire", "sync.Cond.Wait", "sync.WaitGroup.Wait",
		"synctest.Run", "synctest.Wait":
		return false
	}
	return !g.durable
}

// isRunning reports whether a goroutine uses the processor, or waits for it.
func (g goroutine) isRunning() bool { return g.state == "running" || g.state == "runnable" }

// awaitsMutex reports whether a goroutine waits for a mutex, which stops the time of a bubble.
func (g goroutine) awaitsMutex() bool {
	return strings.HasPrefix(g.state, "sync.Mutex.") || strings.HasPrefix(g.state, "sync.RWMutex.")
}

// moduleFrames returns the innermost calls of this module outside of this package, at most most.
func (g goroutine) moduleFrames(most int) []frame {
	var out []frame
	for _, f := range g.frames {
		if f.inModule && len(out) < most {
			out = append(out, f)
		}
	}
	return out
}

// describeState describes what a goroutine does, as a sentence without its subject: "waits for a mutex in …, called by …".
func (g goroutine) describeState() string {
	what := map[string]string{
		"chan send": "waits for somebody who receives what it sends", "chan receive": "waits for something to receive",
		"select": "waits in a select", "select (no cases)": "waits for ever", "sleep": "sleeps", "running": "is running",
		"runnable": "is running", "sync.WaitGroup.Wait": "waits for other goroutines to end",
		"sync.Cond.Wait": "waits for a condition",
	}[g.state]
	switch {
	case g.awaitsMutex():
		what = "waits for a mutex"
	case what == "":
		what = "is in " + g.state
	}
	frames := g.moduleFrames(3)
	for i, f := range frames {
		what += map[bool]string{true: " in ", false: ", called by "}[i == 0] + f.String()
	}
	return what
}

// isStandstill reports whether no goroutine of a bubble can ever go on: one waits for a mutex, which stops the time, and none
// runs that could unlock it.
func isStandstill(in []goroutine) bool {
	return slices.ContainsFunc(in, goroutine.awaitsMutex) && !slices.ContainsFunc(in, goroutine.canProceed)
}

// describeWaits describes which goroutines wait for what, grouped by what they do: first those that wait for a mutex, then
// those that can go on, then those that may hold the mutex, then the others. Goroutines outside of the manager are left out.
func describeWaits(in []goroutine) []string {
	type group struct {
		g     goroutine
		count int
	}
	var groups []*group
	perText := map[string]*group{}
	for _, g := range in {
		if len(g.moduleFrames(1)) == 0 {
			continue
		}
		key := g.lock + g.describeState()
		if perText[key] == nil {
			perText[key] = &group{g: g}
			groups = append(groups, perText[key])
		}
		perText[key].count++
	}
	rank := func(g *group) int {
		switch {
		case g.g.awaitsMutex():
			return 0
		case g.g.canProceed():
			return 1
		case mayHoldMutex(g.g, in):
			return 2
		case strings.HasPrefix(g.g.moduleFrames(1)[0].function, "test/"):
			return 4 // the harness waits for the product
		}
		return 3
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.count, a.count), cmp.Compare(a.g.describeState(), b.g.describeState()))
	})
	var out []string
	for _, g := range groups {
		line := "One goroutine "
		if g.count > 1 {
			line = fmt.Sprintf("%d goroutines: each ", g.count)
		}
		line += g.g.describeState() + "."
		if !g.g.awaitsMutex() && rank(g) == 2 {
			line += " It may hold the mutex."
		}
		out = append(out, line)
	}
	return out
}

// mayHoldMutex reports whether a goroutine is inside a method of a type whose mutex another one waits for.
func mayHoldMutex(g goroutine, in []goroutine) bool {
	for _, w := range in {
		if !w.awaitsMutex() {
			continue
		}
		at := w.moduleFrames(1)
		if len(at) == 0 || at[0].receiverType() == "" {
			continue
		}
		for _, f := range g.frames {
			if f.inModule && f.receiverType() == at[0].receiverType() {
				return true
			}
		}
	}
	return false
}

// describeStandstill returns one sentence that says why a bubble stands still. It prefers a waiter inside the manager, and
// names the likeliest holder of the mutex.
func describeStandstill(in []goroutine) string {
	first, count := goroutine{}, 0
	for _, g := range in {
		if !g.awaitsMutex() {
			continue
		}
		if count == 0 || len(first.moduleFrames(1)) == 0 && len(g.moduleFrames(1)) > 0 {
			first = g
		}
		count++
	}
	at := first.moduleFrames(1)
	if len(at) == 0 {
		return "A mutex outside of this module is never unlocked: a goroutine " + first.describeState()
	}
	text := fmt.Sprintf("A mutex is never unlocked: %s waits for it", at[0])
	if count > 1 {
		text += fmt.Sprintf(", one of %d goroutines that wait for a mutex", count)
	}
	// Who waits in a method of that type itself is the likeliest holder. Who called another function there may as well hold no mutex.
	var caller *goroutine
	for i, g := range in {
		switch {
		case g.awaitsMutex() || !mayHoldMutex(g, in):
		case g.moduleFrames(1)[0].receiverType() == at[0].receiverType():
			return text + ". It may be held by a goroutine that " + g.describeState()
		case caller == nil:
			caller = &in[i]
		}
	}
	if caller != nil {
		return text + ". It may be held by a goroutine that " + caller.describeState() + ", or whoever locked it has returned without unlocking it"
	}
	// Two mutexes that two goroutines lock in opposite orders.
	for _, g := range in {
		if g.awaitsMutex() && g.lock != first.lock && g.lock != "" {
			return text + ". Another goroutine " + g.describeState()
		}
	}
	if r := at[0].receiverType(); r != "" {
		text += ". No other goroutine is inside of " + r
	}
	return text + ", so whoever locked it has returned without unlocking it"
}
