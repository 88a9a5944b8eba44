package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// maxServers bounds the servers of one scenario.
	maxServers = 5000
	// maxTools bounds the tools of one server.
	maxTools = 5000
)

// word is a name for files, reports and servers.
var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

const wordRule = "use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first"

// Check says what is wrong with a scenario, apart from what only a Plan can tell (what a selector picks, and what follows
// from the tier). The error is Problems. Parse has checked what it returns.
func (s Scenario) Check() error {
	f := &findings{}
	switch {
	case s.Name == "":
		f.add("name", "begin with name: and a word", "the scenario has no name")
	case !word().MatchString(s.Name):
		f.add("name", wordRule, "%s is no name for a scenario", quote(s.Name))
	}
	oneOf(f, "tiers", s.Tiers, words(Tiers), "tier")
	f.positive("duration", s.Duration)
	f.positive("settle", s.Settle)
	f.groups(s.Servers)
	for i, x := range s.Faults {
		path := fmt.Sprintf("faults[%d]", i)
		f.fault(path, x)
		f.times(path, x.At, x.Every, x.Times, x.Spread, s.Duration)
		f.positive(path+".for", x.For)
		f.selector(path+".on", x.On)
	}
	for i, c := range s.Commands {
		path := fmt.Sprintf("commands[%d]", i)
		f.command(path, c)
		f.times(path, c.At, c.Every, c.Times, c.Spread, s.Duration)
		f.selector(path+".on", c.On)
	}
	for i, l := range s.Load {
		path := fmt.Sprintf("load[%d]", i)
		f.load(path, l)
		f.selector(path+".on", l.On)
	}
	f.manager(s.Manager)
	oneOf(f, "invariants", s.Invariants, Invariants, "invariant")
	oneOf(f, "sometimes", s.Sometimes, sortedKeys(Occasions), "occasion")
	return f.list.err()
}

func (f *findings) positive(path string, d messages.Duration) {
	if d < 0 {
		f.add(path, "leave it out to have its default", "a duration must not be negative")
	}
}

// oneOf checks the words of a list.
func oneOf[T ~string](f *findings, path string, list []T, known []string, what string) {
	for i, w := range list {
		if !slices.Contains(known, string(w)) {
			f.add(fmt.Sprintf("%s[%d]", path, i), instead(string(w), known), "there is no %s %s", what, quote(string(w)))
		}
		if slices.Contains(list[:i], w) {
			f.add(fmt.Sprintf("%s[%d]", path, i), "leave one out", "%s stands here twice", quote(string(w)))
		}
	}
}

func (f *findings) groups(groups []Group) {
	if len(groups) == 0 {
		f.add("servers", "write at least one, such as: - name: web", "there are no servers")
	}
	owner := map[string]string{} // of every id and group name
	total := 0
	for i, g := range groups {
		path := fmt.Sprintf("servers[%d]", i)
		f.group(path, g)
		total += max(g.Count, 1)
		if total > maxServers {
			f.add(path, "", "there are more than %d servers", maxServers)
			return
		}
		if other, taken := owner[g.Name]; taken {
			f.add(path+".name", "give each its own", "the group %s has the name of %s", quote(g.Name), other)
		}
		owner[g.Name] = "another group"
		if g.Count < 2 {
			continue
		}
		for _, id := range g.ids() {
			if other, taken := owner[id]; taken {
				f.add(path+".name", "rename one", "the server %s has the name of %s", quote(id), other)
			}
			owner[id] = "a server of the group " + quote(g.Name)
		}
	}
}

func (f *findings) group(path string, g Group) {
	switch {
	case g.Name == "":
		f.add(path+".name", "write name: and a word", "these servers have no name")
	case !word().MatchString(g.Name):
		f.add(path+".name", wordRule, "%s is no name for servers", quote(g.Name))
	}
	if g.Count < 0 {
		f.add(path+".count", "write how many there are", "the count %d is negative", g.Count)
	}
	if g.Kind != "" && !slices.Contains(Kinds, g.Kind) {
		f.add(path+".kind", instead(string(g.Kind), words(Kinds)), "there is no kind %s of server", quote(string(g.Kind)))
	}
	if g.Era != "" && !slices.Contains(Eras, g.Era) {
		f.add(path+".era", instead(string(g.Era), words(Eras)), "there is no era %s", quote(string(g.Era)))
	}
	if g.Kind == messages.SSE && g.Era == messages.EraModern {
		f.add(path+".era", "use kind: http, or leave the era out", "sse is a transport of the legacy era")
	}
	if g.Tools != 0 && (g.Tools < 3 || g.Tools > maxTools) {
		f.add(path+".tools", fmt.Sprintf("write 3 to %d, or leave it out", maxTools),
			"a server cannot have %d tools: read, write and put are among them", g.Tools)
	}
	if tools := g.tools(); g.Pages < 0 || g.Pages > tools {
		f.add(path+".pages", "", "%d tools cannot be listed over %d pages", tools, g.Pages)
	}
	if g.Connect != "" && !slices.Contains(connects, g.Connect) {
		f.add(path+".connect", instead(string(g.Connect), words(connects)), "there is no way %s to connect", quote(string(g.Connect)))
	}
	if g.IdleTimeout != 0 && g.Connect != messages.Lazy {
		f.add(path+".idleTimeout", "say connect: lazy as well", "only a lazy server is let go when it is idle")
	}
	f.positive(path+".start", g.Start)
	f.positive(path+".latency", g.Latency)
	f.positive(path+".connectTimeout", g.ConnectTimeout)
	f.positive(path+".callTimeout", g.CallTimeout)
	f.positive(path+".maxCallTimeout", g.MaxCallTimeout)
	f.positive(path+".idleTimeout", g.IdleTimeout)
	if g.MaxCallTimeout > 0 && time.Duration(g.MaxCallTimeout) < or(g.CallTimeout, defaultCall) {
		f.add(path+".maxCallTimeout", "say a shorter callTimeout as well", "it is shorter than the call timeout")
	}
	if g.MaxInFlight < 0 {
		f.add(path+".maxInFlight", "leave it out for no bound", "%d calls cannot be under way", g.MaxInFlight)
	}
	if g.MaxQueued != 0 && g.MaxInFlight == 0 {
		f.add(path+".maxQueued", "say maxInFlight: as well", "no call waits for its turn where there is no bound in flight")
	}
	if g.Tasks != "" && !slices.Contains(taskWords, g.Tasks) {
		f.add(path+".tasks", instead(g.Tasks, taskWords), "there is no way %s to run calls as tasks", quote(g.Tasks))
	}
}

func (f *findings) times(path string, at, every messages.Duration, times int, spread, duration messages.Duration) {
	f.positive(path+".at", at)
	f.positive(path+".every", every)
	f.positive(path+".spread", spread)
	if times < 0 {
		f.add(path+".times", "leave it out for as many as there is time for", "%d times cannot be", times)
	}
	if times > 1 && every == 0 {
		f.add(path+".times", "say every: as well", "it is not said how often it is repeated")
	}
	if duration > 0 && at > duration {
		f.add(path+".at", "let it begin before, or say a longer duration", "it begins at %s, after everything has ended at %s",
			short(at), short(duration))
	}
}

func (f *findings) selector(path string, s Selector) {
	for i, w := range s {
		at := fmt.Sprintf("%s[%d]", path, i)
		if n, some := strings.CutPrefix(w, "any:"); some {
			if v, err := strconv.Atoi(n); err != nil || v < 1 {
				f.add(at, "write any: and a number, such as any:3", "%s picks no servers", quote(w))
			}
			continue
		}
		if !validPattern(w) {
			f.add(at, "write a server's or a group's name, * or a pattern such as web-*", "%s is no pattern", quote(w))
		}
	}
}

func (f *findings) command(path string, c Command) {
	known := sortedKeys(Commands)
	switch {
	case !slices.Contains(known, c.Do):
		f.add(path+".do", instead(c.Do, known), "there is no command %s", quote(c.Do))
	case c.Do == "wake" && len(c.On) > 0:
		f.add(path+".on", "leave it out", "%s is about no single server", c.Do)
	default:
		f.adjustment(path, c)
	}
}

// wholeManager says which commands have no server.
func wholeManager(do string) bool { return do == "configure" || do == "wake" }

func (f *findings) load(path string, l Load) {
	n, further := strings.CutPrefix(l.Tool, "tool-")
	number, err := strconv.Atoi(n)
	if !slices.Contains([]string{"", ReadTool, PutTool, WriteTool}, l.Tool) && (!further || err != nil || number < 4) {
		f.add(path+".tool", instead(l.Tool, []string{ReadTool, PutTool, WriteTool}), "there is no tool %s", quote(l.Tool))
	}
	if l.Rate < 0 {
		f.add(path+".rate", "write calls per second", "the rate %v is negative", l.Rate)
	}
	if l.Size < 0 {
		f.add(path+".size", "write bytes", "the size %d is negative", l.Size)
	}
	if l.Read != "" && !slices.Contains(Reads, l.Read) {
		f.add(path+".read", instead(l.Read, Reads), "there is no read %s", quote(l.Read))
	}
	if l.Callers < 0 {
		f.add(path+".callers", "leave it out for one", "%d callers cannot be", l.Callers)
	}
	if !(l.Cancel >= 0 && l.Cancel <= 1) {
		f.add(path+".cancel", "write 0.5 for every other one", "a share of %v of the calls cannot be given up", l.Cancel)
	}
	f.positive(path+".timeout", l.Timeout)
	f.positive(path+".from", l.From)
	f.positive(path+".for", l.For)
}

func (f *findings) manager(m Manager) {
	for _, n := range []struct {
		key   string
		value int
	}{{"gate", m.Gate}, {"stdioPark", m.StdioPark}, {"networkPark", m.NetworkPark}} {
		if n.value < 0 {
			f.add("manager."+n.key, "leave it out to have its default", "%d is negative", n.value)
		}
	}
	for _, d := range []struct {
		key   string
		value messages.Duration
	}{
		{"stable", m.Stable}, {"probe", m.Probe}, {"cap", m.Cap}, {"withdrawAfter", m.WithdrawAfter}, {"callWait", m.CallWait},
		{"probeEvery", m.ProbeEvery},
	} {
		f.positive("manager."+d.key, d.value)
	}
	if len(f.list) > 0 {
		return
	}
	if err := m.policy().Validate(); err != nil {
		f.add("manager", "", "%s", strings.ReplaceAll(err.Error(), "\n", ", "))
	}
}
