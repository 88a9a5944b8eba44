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

// namePattern matches a name that can stand in files, reports and ids of servers.
var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

// wordRule is the fix for a name that does not match.
const wordRule = "use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first"

// Check says what is wrong with a scenario, except for faults that only a Plan can find (which servers a selector
// picks, and what follows from the tier). The error is Problems. A scenario that Parse returned has passed it.
func (s Scenario) Check() error {
	f := &findings{}
	switch {
	case s.Name == "":
		f.addProblem("name", "begin with name: and a word", "the scenario has no name")
	case !namePattern().MatchString(s.Name):
		f.addProblem("name", wordRule, "%s is no name for a scenario", quoteWord(s.Name))
	}
	checkWords(f, "tiers", s.Tiers, toStrings(Tiers), "tier")
	f.checkNotNegative("duration", s.Duration)
	f.checkNotNegative("settle", s.Settle)
	f.checkGroups(s.Servers)
	// The paths in the problems are those of the file, so that Vet can say the line of each.
	for i, x := range s.Faults {
		path := fmt.Sprintf("faults[%d]", i)
		f.checkFault(path, x)
		f.checkTimes(path, x.At, x.Every, x.Times, x.Spread, s.Duration)
		f.checkNotNegative(path+".for", x.For)
		f.checkSelector(path+".on", x.On)
	}
	for i, c := range s.Commands {
		path := fmt.Sprintf("commands[%d]", i)
		f.checkCommand(path, c)
		f.checkTimes(path, c.At, c.Every, c.Times, c.Spread, s.Duration)
		f.checkSelector(path+".on", c.On)
	}
	for i, l := range s.Load {
		path := fmt.Sprintf("load[%d]", i)
		f.checkLoad(path, l)
		f.checkSelector(path+".on", l.On)
	}
	for i, a := range s.Agents {
		f.checkAgents(fmt.Sprintf("agents[%d]", i), a)
	}
	f.checkManager(s.Manager)
	checkWords(f, "invariants", s.Invariants, Invariants, "invariant")
	checkWords(f, "sometimes", s.Sometimes, sortedKeys(Occasions), "occasion")
	return f.list.asError()
}

// checkNotNegative adds a problem for a negative duration. 0 is a duration that was left out, and has its default.
func (f *findings) checkNotNegative(path string, d messages.Duration) {
	if d < 0 {
		f.addProblem(path, "leave it out to have its default", "a duration must not be negative")
	}
}

// checkWords checks the words of a list against the known ones; what names their kind for the problem.
func checkWords[T ~string](f *findings, path string, list []T, known []string, what string) {
	for i, w := range list {
		if !slices.Contains(known, string(w)) {
			f.addProblem(fmt.Sprintf("%s[%d]", path, i), suggestWord(string(w), known), "there is no %s %s", what, quoteWord(string(w)))
		}
		if slices.Contains(list[:i], w) {
			f.addProblem(fmt.Sprintf("%s[%d]", path, i), "leave one out", "%s stands here twice", quoteWord(string(w)))
		}
	}
}

// checkGroups checks the groups and that no two servers or groups share a name, because selectors use both. It stops at
// maxServers, before it makes the names of more.
func (f *findings) checkGroups(groups []Group) {
	if len(groups) == 0 {
		f.addProblem("servers", "write at least one, such as: - name: web", "there are no servers")
	}
	// owner maps each id and group name to a description of its owner.
	owner := map[string]string{}
	total := 0
	for i, g := range groups {
		path := fmt.Sprintf("servers[%d]", i)
		f.checkGroup(path, g)
		total += max(g.Count, 1)
		if total > maxServers {
			f.addProblem(path, "", "there are more than %d servers", maxServers)
			return
		}
		if other, taken := owner[g.Name]; taken {
			f.addProblem(path+".name", "give each its own", "the group %s has the name of %s", quoteWord(g.Name), other)
		}
		owner[g.Name] = "another group"
		if g.Count < 2 {
			continue
		}
		for _, id := range g.serverIDs() {
			if other, taken := owner[id]; taken {
				f.addProblem(path+".name", "rename one", "the server %s has the name of %s", quoteWord(id), other)
			}
			owner[id] = "a server of the group " + quoteWord(g.Name)
		}
	}
}

// checkGroup checks one group by itself: its words, its bounds, and keys that have an effect only beside others.
func (f *findings) checkGroup(path string, g Group) {
	switch {
	case g.Name == "":
		f.addProblem(path+".name", "write name: and a word", "these servers have no name")
	case !namePattern().MatchString(g.Name):
		f.addProblem(path+".name", wordRule, "%s is no name for servers", quoteWord(g.Name))
	}
	if g.Count < 0 {
		f.addProblem(path+".count", "write how many there are", "the count %d is negative", g.Count)
	}
	if g.Kind != "" && !slices.Contains(Kinds, g.Kind) {
		f.addProblem(path+".kind", suggestWord(string(g.Kind), toStrings(Kinds)), "there is no kind %s of server", quoteWord(string(g.Kind)))
	}
	if g.Era != "" && !slices.Contains(Eras, g.Era) {
		f.addProblem(path+".era", suggestWord(string(g.Era), toStrings(Eras)), "there is no era %s", quoteWord(string(g.Era)))
	}
	if g.Kind == messages.SSE && g.Era == messages.EraModern {
		f.addProblem(path+".era", "use kind: http, or leave the era out", "sse is a transport of the legacy era")
	}
	if g.Tools != 0 && (g.Tools < 3 || g.Tools > maxTools) {
		f.addProblem(path+".tools", fmt.Sprintf("write 3 to %d, or leave it out", maxTools),
			"a server cannot have %d tools: read, write and put are among them", g.Tools)
	}
	if tools := g.toolCount(); g.Pages < 0 || g.Pages > tools {
		f.addProblem(path+".pages", "", "%d tools cannot be listed over %d pages", tools, g.Pages)
	}
	if g.Connect != "" && !slices.Contains(connectWords, g.Connect) {
		f.addProblem(path+".connect", suggestWord(string(g.Connect), toStrings(connectWords)), "there is no way %s to connect", quoteWord(string(g.Connect)))
	}
	if g.IdleTimeout != 0 && g.Connect != messages.Lazy {
		f.addProblem(path+".idleTimeout", "say connect: lazy as well", "only a lazy server is let go when it is idle")
	}
	f.checkNotNegative(path+".start", g.Start)
	f.checkNotNegative(path+".latency", g.Latency)
	f.checkNotNegative(path+".connectTimeout", g.ConnectTimeout)
	f.checkNotNegative(path+".callTimeout", g.CallTimeout)
	f.checkNotNegative(path+".maxCallTimeout", g.MaxCallTimeout)
	f.checkNotNegative(path+".idleTimeout", g.IdleTimeout)
	if g.MaxCallTimeout > 0 && time.Duration(g.MaxCallTimeout) < durationOr(g.CallTimeout, defaultCall) {
		f.addProblem(path+".maxCallTimeout", "say a shorter callTimeout as well", "it is shorter than the call timeout")
	}
	if g.MaxInFlight < 0 {
		f.addProblem(path+".maxInFlight", "leave it out for no bound", "%d calls cannot be under way", g.MaxInFlight)
	}
	if g.MaxQueued != 0 && g.MaxInFlight == 0 {
		f.addProblem(path+".maxQueued", "say maxInFlight: as well", "no call waits for its turn where there is no bound in flight")
	}
	if g.Pin != "" && !slices.Contains(pinWords, g.Pin) {
		f.addProblem(path+".pin", suggestWord(g.Pin, pinWords), "there is no way %s to treat changed tools", quoteWord(g.Pin))
	}
	if g.Web != "" && !slices.Contains(webWords, g.Web) {
		f.addProblem(path+".web", suggestWord(g.Web, webWords), "there is no way %s to speak HTTP", quoteWord(g.Web))
	}
	if g.Web != "" && g.Kind != messages.HTTP {
		f.addProblem(path+".web", "say kind: http as well", "only a server over http is reached with the HTTP client")
	}
	if g.Renews && g.Kind != messages.HTTP && g.Kind != messages.SSE {
		f.addProblem(path+".renews", "say kind: http or sse as well", "only a server over http has credentials that a simulation can renew")
	}
	if g.Personal && g.Web == "" {
		f.addProblem(path+".personal", "say web: plain as well", "only the HTTP client sends the credentials of callers")
	}
	if g.Lacks != "" {
		checkWords(f, path+".lacks", strings.Split(g.Lacks, ","), Offers, "offer")
		if !g.Offers {
			f.addProblem(path+".lacks", "add offers: true, or leave it out", "a server that offers nothing lacks all of it")
		}
	}
	if g.Tasks != "" && !slices.Contains(taskWords, g.Tasks) {
		f.addProblem(path+".tasks", suggestWord(g.Tasks, taskWords), "there is no way %s to run calls as tasks", quoteWord(g.Tasks))
	}
}

// checkTimes checks when an entry begins and how it is repeated. duration is 0 if it follows from the tier.
func (f *findings) checkTimes(path string, at, every messages.Duration, times int, spread, duration messages.Duration) {
	f.checkNotNegative(path+".at", at)
	f.checkNotNegative(path+".every", every)
	f.checkNotNegative(path+".spread", spread)
	if times < 0 {
		f.addProblem(path+".times", "leave it out for as many as there is time for", "%d times cannot be", times)
	}
	if times > 1 && every == 0 {
		f.addProblem(path+".times", "say every: as well", "it is not said how often it is repeated")
	}
	if duration > 0 && at > duration {
		f.addProblem(path+".at", "let it begin before, or say a longer duration", "it begins at %s, after everything has ended at %s",
			shortDuration(at), shortDuration(duration))
	}
}

// checkSelector checks the form of the words; whether they pick servers is known only to Plan.
func (f *findings) checkSelector(path string, s Selector) {
	for i, w := range s {
		at := fmt.Sprintf("%s[%d]", path, i)
		if n, isAny := strings.CutPrefix(w, "any:"); isAny {
			if v, err := strconv.Atoi(n); err != nil || v < 1 {
				f.addProblem(at, "write any: and a number, such as any:3", "%s picks no servers", quoteWord(w))
			}
			continue
		}
		if !validPattern(w) {
			f.addProblem(at, "write a server's or a group's name, * or a pattern such as web-*", "%s is no pattern", quoteWord(w))
		}
	}
}

// checkCommand checks the word of a command and its parameters.
func (f *findings) checkCommand(path string, c Command) {
	known := sortedKeys(Commands)
	switch {
	case !slices.Contains(known, c.Do):
		f.addProblem(path+".do", suggestWord(c.Do, known), "there is no command %s", quoteWord(c.Do))
	case c.Do != "configure" && wholeManager(c.Do) && len(c.On) > 0:
		f.addProblem(path+".on", "leave it out", "%s is about no single server", c.Do)
	default:
		f.adjustment(path, c)
	}
}

// wholeManager reports whether a command concerns the manager and no single server.
func wholeManager(do string) bool {
	return do == "configure" || do == "wake" || do == ConnectAll || do == DisconnectAll
}

// checkLoad checks the tool, the numbers and the times of a load.
func (f *findings) checkLoad(path string, l Load) {
	// Every server has three tools of fixed names; further ones are numbered from 4 on.
	n, further := strings.CutPrefix(l.Tool, "tool-")
	number, err := strconv.Atoi(n)
	if !slices.Contains([]string{"", ReadTool, PutTool, WriteTool}, l.Tool) && (!further || err != nil || number < 4) {
		f.addProblem(path+".tool", suggestWord(l.Tool, []string{ReadTool, PutTool, WriteTool}), "there is no tool %s", quoteWord(l.Tool))
	}
	if l.Rate < 0 {
		f.addProblem(path+".rate", "write calls per second", "the rate %v is negative", l.Rate)
	}
	if l.Size < 0 {
		f.addProblem(path+".size", "write bytes", "the size %d is negative", l.Size)
	}
	if l.Read != "" && !slices.Contains(Reads, l.Read) {
		f.addProblem(path+".read", suggestWord(l.Read, Reads), "there is no read %s", quoteWord(l.Read))
	}
	if l.Callers < 0 {
		f.addProblem(path+".callers", "leave it out for one", "%d callers cannot be", l.Callers)
	}
	if l.Together < 0 {
		f.addProblem(path+".together", "leave it out for one at a time", "%d calls cannot be made in one instant", l.Together)
	}
	// Written so that NaN, which YAML can hold, is refused as well.
	if !(l.Cancel >= 0 && l.Cancel <= 1) {
		f.addProblem(path+".cancel", "write 0.5 for every other one", "a share of %v of the calls cannot be given up", l.Cancel)
	}
	f.checkNotNegative(path+".timeout", l.Timeout)
	f.checkNotNegative(path+".from", l.From)
	f.checkNotNegative(path+".for", l.For)
}

// checkManager checks the numbers of the manager and, if all problems so far allow it, the restart policy that they
// make.
func (f *findings) checkManager(m Manager) {
	for _, n := range []struct {
		key   string
		value int
	}{{"gate", m.Gate}, {"stdioPark", m.StdioPark}, {"networkPark", m.NetworkPark}, {"drills", m.Drills}} {
		if n.value < 0 {
			f.addProblem("manager."+n.key, "leave it out to have its default", "%d is negative", n.value)
		}
	}
	for _, d := range []struct {
		key   string
		value messages.Duration
	}{
		{"stable", m.Stable}, {"probe", m.Probe}, {"cap", m.Cap}, {"withdrawAfter", m.WithdrawAfter}, {"callWait", m.CallWait},
		{"probeEvery", m.ProbeEvery},
	} {
		f.checkNotNegative("manager."+d.key, d.value)
	}
	// Validate would report the negative numbers once more.
	if len(f.list) > 0 {
		return
	}
	if err := m.restartPolicy().Validate(); err != nil {
		f.addProblem("manager", "", "%s", strings.ReplaceAll(err.Error(), "\n", ", "))
	}
}
