package drills

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
)

// commandedServer records what the drill expects of one server after its commands: the spec in force, whether its owner wants it, and its phase.
type commandedServer struct {
	*server
	configured, runtime *supervisor.Spec
	wanted              bool
	phase               messages.Phase
	// open says that it has a connection, which one that was disabled may keep.
	open bool
	// opened counts the connections that it has had. refusal is the class with which it refuses one, empty if it does not.
	opened  int
	refusal messages.Class
	// failure is the class with which its last attempt failed, attempts counts those that commands have begun.
	failure  messages.Class
	attempts int
}

func (c *commandedServer) specInForce() *supervisor.Spec {
	if c.runtime != nil {
		return c.runtime
	}
	return c.configured
}

// tryAgain begins an attempt to connect.
func (c *commandedServer) tryAgain() {
	c.open, c.failure = false, c.refusal
	c.attempts++
	switch c.refusal {
	case "":
		c.phase, c.open = messages.Connected, true
		c.opened++
	case messages.ClassUnauthorized:
		c.phase = messages.NeedsAuth
	default:
		c.phase = messages.Failed
	}
}

// enable and disable do what the owner's commands do.
func (c *commandedServer) enable() {
	switch {
	case c.wanted:
	case c.open:
		c.wanted, c.phase = true, messages.Connected
	default:
		c.wanted = true
		c.tryAgain()
	}
}

func (c *commandedServer) disable(cold bool) {
	c.wanted, c.phase, c.open = false, messages.Disabled, c.open && !cold
}

// applySpec puts another spec in force than was.
func (c *commandedServer) applySpec(was *supervisor.Spec, wanted bool) {
	if c.open && was.SameConnection(*c.specInForce()) {
		if wanted {
			c.enable()
		} else {
			c.disable(false)
		}
		return
	}
	if c.wanted, c.open = wanted, false; wanted {
		c.tryAgain()
	} else {
		c.phase = messages.Disabled
	}
}

// setRuntime gives it a spec at runtime, nil for none, and setConfigured one of the configuration. They report whether the server is there after.
func (c *commandedServer) setRuntime(spec *supervisor.Spec) {
	was := c.specInForce()
	c.runtime = spec
	c.followSpecs(was, c.specInForce() == nil || !c.specInForce().Disabled)
}

func (c *commandedServer) setConfigured(spec *supervisor.Spec) {
	was, before := c.specInForce(), c.configured
	c.configured = spec
	if c.runtime != nil || before != nil && spec != nil && before.Equal(*spec) {
		return
	}
	wanted := spec == nil || !spec.Disabled
	if before != nil && spec != nil && before.Disabled == spec.Disabled {
		wanted = c.wanted // what a person has said by hand stands
	}
	c.followSpecs(was, wanted)
}

func (c *commandedServer) followSpecs(was *supervisor.Spec, wanted bool) {
	switch now := c.specInForce(); {
	case now == nil:
		c.wanted, c.open, c.phase = false, false, ""
	case was == nil:
		if c.wanted = wanted; wanted {
			c.tryAgain()
		} else {
			c.phase = messages.Disabled
		}
	default:
		c.applySpec(was, wanted)
	}
}

// isThere reports whether the manager has the server.
func (c *commandedServer) isThere() bool { return c.specInForce() != nil }

// attemptClass returns the class of the error with which a command is answered that waits for an attempt, empty for none.
func (c *commandedServer) attemptClass() messages.Class {
	if c.phase == messages.Failed || c.phase == messages.NeedsAuth {
		return c.failure
	}
	return ""
}

// playCommands gives commands about two servers, by their names and by whole sets, at runtime and in the configuration, while the servers accept
// connections or refuse them, and compares each answer, and what the manager has then, with what the commands amount to.
func playCommands(s *stage) {
	all := []*commandedServer{{server: newServer("files", "read")}, {server: newServer("mail", "read")}}
	m := s.startManager(supervisor.Config{}, all[0].server, all[1].server)
	if m == nil {
		return
	}
	// Most programs have their servers from one source only.
	sources := pickOne(s, []bool{true}, []bool{false}, []bool{true, false})
	for range 16 + s.rng.IntN(16) {
		c := pickOne(s, all...)
		if s.isOneIn(3) {
			c.refusal = pickOne(s, "", "", messages.ClassNetwork, messages.ClassUnauthorized, messages.ClassUnauthorized)
			var err error
			if c.refusal != "" {
				err = &transports.Error{Class: c.refusal, Text: "it lets nobody in"}
			}
			c.refuseDials(err)
			s.addStory("%s refuses %q", c.name, c.refusal)
		}
		begun := time.Now()
		for _, each := range all {
			each.attempts = each.countDials()
		}
		if !giveCommand(s, m, all, c, sources) {
			return
		}
		s.settleAll()
		if !checkServers(s, m, all, "at once") {
			return
		}
		for _, each := range all {
			// While time passes, what has failed is tried again.
			if time.Since(begun) == 0 && !expectEqual(s, "I16", each.name, "the number of attempts to connect it", each.countDials(), each.attempts) {
				return
			}
		}
		if s.isOneIn(4) {
			s.letPass(15 * time.Minute)
			for _, c := range all {
				// Credentials that were refused are not shown again unasked, and all else is tried again.
				if c.phase == messages.Failed {
					c.tryAgain()
				}
			}
			if !checkServers(s, m, all, "15 minutes later") {
				return
			}
		}
	}
}

// drawSpec draws a spec of a server. Some differ in what its connection is made of.
func drawSpec(s *stage, c *commandedServer) *supervisor.Spec {
	spec := c.spec
	spec.CallTimeout = messages.Duration(time.Duration(1+s.rng.IntN(2)) * time.Minute)
	spec.MaxMessage = int64(1+s.rng.IntN(2)) << 20
	spec.Disabled = s.isOneIn(5)
	return &spec
}

// giveCommand gives one command, and judges its answer.
func giveCommand(s *stage, m *supervisor.Manager, all []*commandedServer, c *commandedServer, sources []bool) bool {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	var err error
	var want messages.Class
	isUnknown := !c.isThere()
	var what string
	n := s.rng.IntN(16)
	if n <= 2 && !slices.Contains(sources, true) {
		n = 10
	}
	switch n {
	case 0, 1, 2:
		spec := drawSpec(s, c)
		if same := c.runtime; same != nil && n > 0 {
			spec = same
		}
		what = fmt.Sprintf("Connect of %s (the same spec: %t, disabled: %t)", c.name, spec == c.runtime, spec.Disabled)
		if c.runtime != nil && c.runtime.Equal(*spec) && c.wanted == !spec.Disabled {
			if c.phase == messages.Failed || c.phase == messages.NeedsAuth {
				c.tryAgain()
			}
		} else {
			c.setRuntime(spec)
		}
		isUnknown, want = false, c.attemptClass()
		err = m.Connect(ctx, c.name, *spec)
	case 3:
		what = "Toggle off of " + c.name
		if c.isThere() {
			c.disable(false)
		}
		err = m.Toggle(ctx, c.name, false)
	case 4, 5:
		what = "Toggle on of " + c.name
		if c.isThere() {
			c.enable()
			want = c.attemptClass()
		}
		err = m.Toggle(ctx, c.name, true)
	case 6:
		what = "Disconnect of " + c.name
		if c.isThere() {
			c.disable(true)
		}
		err = m.Disconnect(ctx, c.name)
	case 7:
		what = "Reconnect of " + c.name
		if c.isThere() && c.wanted {
			c.tryAgain()
			want = c.attemptClass()
		} else if c.isThere() {
			want = messages.ClassInvalid
		}
		err = m.Reconnect(ctx, c.name)
	case 8:
		what = "Refresh of " + c.name
		if c.isThere() {
			want = c.attemptClass()
		}
		before := len(c.heardOf("tools/list"))
		err = m.Refresh(ctx, c.name)
		if c.phase == messages.Connected && len(c.heardOf("tools/list")) != before+1 {
			s.reportFinding("I16", c.name, "it was to be listed anew, and was asked for its list %d times", len(c.heardOf("tools/list"))-before)
		}
	case 9:
		what = "Remove of " + c.name
		if isUnknown = !c.isThere(); c.isThere() {
			if c.runtime == nil {
				want = messages.ClassInvalid
			} else {
				c.setRuntime(nil)
			}
		}
		err = m.Remove(ctx, c.name)
	case 12:
		what, isUnknown = "the end of the connection of "+c.name, false
		c.endConns()
		s.letPass(15 * time.Minute)
		for _, each := range all {
			if each.phase == messages.Failed || each == c && c.phase == messages.Connected {
				each.tryAgain()
			} else if each == c {
				each.open = false
			}
		}
	case 13:
		return giveToAll(s, m, all)
	default:
		return giveSet(s, m, all, pickOne(s, sources...))
	}
	s.addStory("%s", what)
	return checkAnswer(s, c.name, what, err, isUnknown, want)
}

// checkAnswer judges the error of a command.
func checkAnswer(s *stage, name, what string, err error, isUnknown bool, want messages.Class) bool {
	if isUnknown {
		if !errors.Is(err, supervisor.ErrUnknownServer) {
			s.reportFinding("I16", name, "%s, which is not there, was answered with %v", what, err)
			return false
		}
		return true
	}
	var typed *supervisor.Error
	if errors.As(err, &typed) && typed.Server != name || messages.ClassOf(err) != want || (err == nil) != (want == "") {
		s.reportFinding("I16", name, "%s was answered with %v of class %q, and must be with class %q", what, err, messages.ClassOf(err), want)
		return false
	}
	return true
}

// giveSet gives the whole set of servers, at runtime or as the configuration, and waits then for what has changed.
func giveSet(s *stage, m *supervisor.Manager, all []*commandedServer, isRuntime bool) bool {
	specs := map[string]supervisor.Spec{}
	var want messages.SetServersResult
	var changed []*commandedServer
	for _, c := range all {
		was := c.configured
		if isRuntime {
			was = c.runtime
		}
		var spec *supervisor.Spec
		if !s.isOneIn(3) {
			if spec = was; spec == nil || s.isOneIn(2) {
				spec = drawSpec(s, c)
			}
			specs[c.name] = *spec
		}
		switch {
		case was == nil && spec == nil:
		case was == nil:
			want.Added = append(want.Added, c.name)
		case spec == nil:
			want.Removed = append(want.Removed, c.name)
		case was.Equal(*spec):
			want.Kept = append(want.Kept, c.name)
		case was.SameConnection(*spec):
			want.Adjusted = append(want.Adjusted, c.name)
		default:
			want.Added, want.Removed = append(want.Added, c.name), append(want.Removed, c.name)
		}
		if isRuntime && (was != nil || spec != nil) && !(was != nil && spec != nil && was.Equal(*spec)) {
			c.setRuntime(spec)
		} else if !isRuntime {
			c.setConfigured(spec)
		}
		changed = append(changed, c)
	}
	give, what := m.Configure, "Configure"
	if isRuntime {
		give, what = m.SetServers, "SetServers"
	}
	s.addStory("%s of %q", what, slices.Sorted(maps.Keys(specs)))
	got, err := give(s.ctx, specs)
	if err != nil || !slices.Equal(got.Added, want.Added) || !slices.Equal(got.Removed, want.Removed) || !slices.Equal(got.Adjusted, want.Adjusted) ||
		!slices.Equal(got.Kept, want.Kept) || len(got.Errors) > 0 {
		s.reportFinding("I16", "", "%s is answered with %+v and %v, and must be with %+v", what, got, err, want)
		return false
	}
	// While a wait lets time pass, what has failed is tried again.
	mayWait := !slices.ContainsFunc(all, func(c *commandedServer) bool { return c.phase == messages.Failed && c.refusal != messages.ClassNetwork })
	for _, c := range changed {
		if !c.isThere() {
			continue
		}
		if !checkWaits(s, m, c, what, mayWait) {
			return false
		}
	}
	return true
}

// checkWaits judges what Ready or Settled say of a server right after a command about it.
func checkWaits(s *stage, m *supervisor.Manager, c *commandedServer, after string, mayWait bool) bool {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	if s.isOneIn(3) || c.phase == messages.Failed && !mayWait {
		return checkAnswer(s, c.name, "Settled after "+after, m.Settled(ctx, c.name), false, "")
	}
	if c.phase == messages.Failed { // it is tried again, which Ready waits for
		if err := m.Ready(ctx, c.name); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, supervisor.ErrNotConnected) {
			s.reportFinding("I16", c.name, "Ready right after %s of a server that is tried again ended before its context, with %v", after, err)
			return false
		}
		return true
	}
	err := m.Ready(ctx, c.name)
	want := map[messages.Phase]error{messages.Connected: nil, messages.Disabled: supervisor.ErrDisabled, messages.NeedsAuth: supervisor.ErrNeedsAuth}[c.phase]
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		s.reportFinding("I16", c.name, "Ready right after %s ended with %v, and must end with %v", after, err, want)
		return false
	}
	return true
}

// giveToAll connects or disconnects all servers.
func giveToAll(s *stage, m *supervisor.Manager, all []*commandedServer) bool {
	if s.isOneIn(3) {
		s.addStory("DisconnectAll")
		for _, c := range all {
			if c.isThere() {
				c.disable(true)
			}
		}
		return checkAnswer(s, "", "DisconnectAll", m.DisconnectAll(s.ctx), false, "")
	}
	s.addStory("ConnectAll")
	var failing []string
	for _, c := range all {
		if c.isThere() && c.phase != messages.Connected {
			if c.wanted {
				c.tryAgain()
			} else {
				c.enable()
			}
		}
		if c.isThere() && c.attemptClass() != "" {
			failing = append(failing, c.name)
		}
	}
	err := m.ConnectAll(s.ctx)
	for _, c := range all {
		isNamed := false
		var typed *supervisor.Error
		switch joined, ok := err.(interface{ Unwrap() []error }); {
		case ok:
			for _, one := range joined.Unwrap() {
				isNamed = isNamed || errors.As(one, &typed) && typed.Server == c.name
			}
		case errors.As(err, &typed):
			isNamed = typed.Server == c.name
		}
		if isNamed != slices.Contains(failing, c.name) {
			s.reportFinding("I16", c.name, "ConnectAll ended with %v, and the servers that fail are %q", err, failing)
			return false
		}
	}
	return true
}

// countLive counts the tools of a server that can be called at once. Those of a connection that was lost stay for some seconds.
func countLive(m *supervisor.Manager, name string) (n int) {
	for _, e := range m.Tools().Server(name) {
		if e.State == catalog.Live {
			n++
		}
	}
	return n
}

// checkServers compares what the manager has with what the commands amount to.
func checkServers(s *stage, m *supervisor.Manager, all []*commandedServer, when string) bool {
	var names []string
	for _, c := range all {
		if !c.isThere() {
			if len(c.openConns()) > 0 {
				s.reportFinding("I16", c.name, "%s: it is removed, and has a connection", when)
				return false
			}
			continue
		}
		names = append(names, c.name)
		st, err := m.ServerStatus(c.name)
		_, callErr := m.CallServerTool(s.ctx, c.name, "read", nil)
		wantCall := map[messages.Phase]error{messages.Connected: nil, messages.Disabled: supervisor.ErrDisabled, messages.NeedsAuth: supervisor.ErrNeedsAuth,
			messages.Failed: supervisor.ErrNotConnected}[c.phase]
		switch {
		case err != nil || st.Status != c.phase:
			s.reportFinding("I16", c.name, "%s: it is %s (%v), and must be %s", when, st.Status, err, c.phase)
			return false
		case wantCall == nil && callErr != nil || wantCall != nil && !errors.Is(callErr, wantCall):
			s.reportFinding("I16", c.name, "%s: it is %s, and a call ended with %v", when, c.phase, callErr)
			return false
		case c.countOpened() != c.opened || len(c.openConns()) > 1 || (len(c.openConns()) == 1) != c.open:
			s.reportFinding("I16", c.name, "%s: it was connected %d times and has %d connections, and must have been %d times (open: %t)", when, c.countOpened(),
				len(c.openConns()), c.opened, c.open)
			return false
		case st.Config == nil || !st.Config.Equal(*c.specInForce()):
			s.reportFinding("I16", c.name, "%s: its spec is %+v, and must be %+v", when, st.Config, *c.specInForce())
			return false
		case countLive(m, c.name) > 0 != (c.phase == messages.Connected):
			s.reportFinding("I14", c.name, "%s: it is %s, and the catalog has %d live tools of it", when, c.phase, countLive(m, c.name))
			return false
		}
	}
	if got := m.Servers(); !slices.Equal(got, names) {
		s.reportFinding("I16", "", "%s: the manager has the servers %q, and must have %q", when, got, names)
		return false
	}
	return true
}
