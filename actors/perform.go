package actors

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The defaults of the bounds that a spec leaves at zero.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultCallTimeout    = 60 * time.Second
	DefaultMaxCallTimeout = 10 * time.Minute
)

// orDefault returns the default for a spec that leaves a duration at zero.
func orDefault(d messages.Duration, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return time.Duration(d)
}

// performEffect carries out one effect of the state machine. Effects that are work only begin here; their end comes as a message.
func (s *Server) performEffect(effect lifecycle.Effect) {
	switch e := effect.(type) {
	// These effects are decided by the supervisor; the actor only names itself and its newest attempt.
	case lifecycle.Ask, lifecycle.Unask, lifecycle.Report, lifecycle.Answer, lifecycle.Install, lifecycle.Decline, lifecycle.Gone:
		s.root.Send(s.sup, FromServer{s.cfg.Name, s.cfg.Epoch, s.state.Epoch, effect})
	case lifecycle.Up:
		// The connect timeout has served its purpose.
		s.att.endBound()
		s.timeouts = 0
		s.connectCount++
		s.root.Send(s.sup, FromServer{s.cfg.Name, s.cfg.Epoch, s.state.Epoch, effect})
		s.armProbe()
	case lifecycle.Dial:
		s.startAttempt(e.Epoch)
	// Dial, Greet and List only start a step; its outcome comes back as a message of the attempt.
	case lifecycle.Greet:
		s.att.startHandshake()
	case lifecycle.List:
		s.att.startListing(s.spec, e.First, s.cfg.Timing.ListTimeout)
	case lifecycle.Coalesce:
		s.scheduleRelist(e)
	// The timers belong to the connection and would only produce stale messages.
	case lifecycle.Shut:
		s.stopTimers()
		// Without a drain, calls end when their session is closed, as outcome unknown.
		drain := time.Duration(0)
		if e.Drain {
			drain = s.drainTime
		}
		s.att.shutDown(drain)
	case lifecycle.Show:
		s.showTools(e.Epoch, e.Rev)
	case lifecycle.Update:
		s.updateTools(e.Epoch, e.Rev)
	// The reason why tools go decides whether the catalog keeps them visible for a moment.
	case lifecycle.Lose:
		s.hideTools(catalog.Change{Kind: catalog.Lose, Epoch: e.Epoch, Rev: e.Rev})
	case lifecycle.Withdraw:
		s.hideTools(catalog.Change{Kind: catalog.Withdraw, Epoch: e.Epoch, Rev: e.Rev})
	// The tools stay visible as cached, without a route: a call wakes the server.
	case lifecycle.Rest:
		change := catalog.Change{Kind: catalog.Cache, Epoch: e.Epoch, Rev: e.Rev}
		if s.tools != nil {
			change.Tools = s.tools.Tools
		}
		s.hideTools(change)
	}
}

// startAttempt begins the attempt of a granted epoch. It forgets what it knew of the connection before, and stores the attempt in
// the Holder first, so that the supervisor can end it if this actor dies.
func (s *Server) startAttempt(epoch uint64) {
	root, self, sup, name, spec := s.root, s.self, s.sup, s.cfg.Name, s.spec
	// The functions work from any goroutine, also after this actor has ended.
	a := newAttempt(name, spec, epoch, limitsFor(spec, s.timeouts),
		func(m any) { root.Send(self, m) },
		func(epoch uint64) { root.Send(sup, AttemptReleased{name, epoch}) })
	a.prepare = s.cfg.Prepare
	s.att, s.attSpec, s.sess, s.info, s.last = a, spec, nil, nil, transports.Info{}
	s.unlisted = ""
	s.overdue = ""
	s.strikes, s.probing, s.dirtySince, s.futileLists, s.shownHash, s.lastProbeAnswer = 0, false, time.Time{}, 0, [32]byte{}, time.Time{}
	s.cfg.Holder.current.Store(a)

	// What an earlier connection has learned (the era, the order of questions, the list) saves this one a round trip or a failure.
	// The template is copied: each session has its own functions and its own random source.
	cfg := s.cfg.Session
	cfg.Rand, cfg.Listed, cfg.Share = s.cfg.Rand, s.list, s.cfg.Cell.Share
	cfg.Era, cfg.Known, cfg.LogLevel = spec.Era, s.cfg.Holder.Era(), spec.LogLevel
	cfg.InitializeFirst = s.initializeFirst
	if cfg.Era == messages.EraAutoWord {
		cfg.Era = messages.EraAuto
	}
	if s.cfg.Handlers != nil {
		cfg.Handlers = trackAnswers(s.cfg.Handlers(serverOf(name, spec)), &s.cfg.Cell.answers, spec.Principal)
	}
	s.hookNotifications(&cfg, epoch)
	open := s.cfg.Open
	a.startDial(func(ctx context.Context) (transports.Transport, error) { return open(ctx, name, spec) }, cfg)
}

// hookNotifications connects the notifications of one connection to the actor, the hub and the logs. The functions run on the
// session's goroutine, must not block, and use nothing of the actor but what is copied here.
func (s *Server) hookNotifications(cfg *session.Config, epoch uint64) {
	root, self, name, spec, hub, cell := s.root, s.self, s.cfg.Name, s.spec, s.cfg.Hub, s.cfg.Cell
	// However many notifications come, at most one toolsChanged waits in the mailbox.
	noted := new(atomic.Bool)
	s.changeNoted = noted
	cfg.OnToolsChanged = func() {
		if noted.CompareAndSwap(false, true) {
			root.Send(self, toolsChanged{epoch})
		}
	}
	// A new connection begins with empty coalescers: nothing of the old one waits.
	notifier := &changeNotifier{hub: hub, name: name}
	cfg.OnResourcesChanged = notifier.noteResources
	cfg.OnPromptsChanged = notifier.notePrompts
	cfg.OnResourceUpdated = func(uri string) {
		// Updates of resources for which no caller has subscribed are dropped. The URI may be a part of a subscribed resource, or
		// contain it, so only "none at all" is certain.
		if some, this := cell.Subscriptions.hasURI(uri); some {
			notifier.noteUpdated(uri, this)
		}
	}
	cfg.OnLog = func(level, logger string, data json.RawMessage) {
		entry := logEntry(func(text string) string { return cell.redactFor(spec, text) }, level, logger, data)
		if cell.Logs.Add(LogLine{Time: time.Now(), Epoch: epoch, LogEntry: entry}) && hub.Watched() {
			hub.Publish(messages.Event{Kind: messages.EventLog, Server: name, Log: &entry})
		}
	}
}

// scheduleRelist waits until the server has been quiet for Quiet, or has announced changes for MaxWait; after failed lists it
// waits longer, doubling from one second to about a minute.
//
// Some servers announce a change whenever they are listed. With Quiet alone they would be listed twenty times a second, for ever;
// so Quiet doubles with each list that brought nothing, until the server has announced nothing for MaxWait.
func (s *Server) scheduleRelist(e lifecycle.Coalesce) {
	// dirtySince is the beginning of the burst: MaxWait counts from there, however often more changes come.
	now, most := time.Now(), s.cfg.Timing.MaxWait
	if s.dirtySince.IsZero() {
		s.dirtySince = now
		if now.Sub(s.listed) > most {
			s.futileLists = 0
		}
	}
	quiet := s.cfg.Timing.Quiet
	// Each list without a change doubles the quiet time.
	for range s.futileLists {
		quiet = min(2*quiet, max(quiet, most))
	}
	// After a failure the wait is longer, because the server may be overloaded.
	wait := min(quiet, s.dirtySince.Add(most).Sub(now))
	if e.Failures > 0 {
		wait = time.Second << min(e.Failures-1, 6)
	}
	if s.relist != nil {
		s.relist.Stop()
	}
	// A timer that has fired already cannot be stopped: its message has an older round.
	s.relistRound++
	root, self, due := s.root, s.self, relistDue{e.Epoch, s.relistRound}
	s.relist = time.AfterFunc(max(wait, 0), func() { root.Send(self, due) })
}

// showTools opens a new admission gate and announces the tools behind it.
func (s *Server) showTools(epoch, rev uint64) {
	// The link is made before the announcement, in which it is the route.
	link := &Link{Server: s.cfg.Name, Epoch: epoch, gate: s.att.openGate(), lastHeard: s.sess.LastMessageAt, answers: &s.cfg.Cell.answers}
	root, self := s.root, s.self
	link.reportError = func(err error) { root.Send(self, linkFailed{epoch, err}) }
	s.useLink(link)
	s.registering = true
	s.announceTools(epoch, rev)
}

// useLink prepares a link for the open gate under the spec in force: its queue, and the idle timer of a lazy server.
func (s *Server) useLink(link *Link) {
	// The idle timer belongs to the old link's spec.
	if s.idle != nil {
		s.idle.Stop()
	}
	// A link belongs to one spec; another spec gets another link to the same gate.
	link.Spec, link.lastUse, link.callQueue = s.spec, nil, nil
	if limits, some := limitsOf(s.spec, s.cfg.MaxInFlight, s.cfg.MaxQueued); some {
		link.callQueue = s.cfg.Cell.setCallLimits(limits)
	} else if s.cfg.Cell.callQueue != nil {
		// The calls that wait under the old bound go on.
		s.cfg.Cell.setCallLimits(unboundedLimits)
	}
	mayRest := s.spec.Connect == messages.Lazy && s.spec.IdleTimeout > 0
	// A call that waits under this spec may be sent under a later one, by which the server may be disconnected for idleness.
	if mayRest || link.callQueue != nil {
		link.lastUse = &s.lastUse
	}
	if mayRest {
		s.lastUse.Store(int64(time.Since(processStart)))
		s.armIdle(link.Epoch, time.Duration(s.spec.IdleTimeout))
	}
	s.link = link
}

// updateTools announces a list that has changed; an unchanged one costs no message.
func (s *Server) updateTools(epoch, rev uint64) {
	s.listed = time.Now()
	// The hash covers all that the registry would be sent.
	if s.tools.Hash == s.shownHash {
		s.futileLists = min(s.futileLists+1, 16)
		return
	}
	s.futileLists = 0
	s.announceTools(epoch, rev)
}

// announceTools sends the list to the registry. For a new connection it asks to be notified, because the server counts as connected
// only when the catalog shows its tools.
func (s *Server) announceTools(epoch, rev uint64) {
	s.shownHash = s.tools.Hash
	// By the revision the registry knows which of two changes of one epoch is the newer.
	change := catalog.Change{Kind: catalog.Announce, Epoch: epoch, Rev: rev, Tools: s.tools.Tools, Route: s.link}
	if s.registering {
		root, self, link := s.root, s.self, s.link
		s.sendToRegistry(change, func() { root.Send(self, linkRegistered{link}) })
	} else {
		s.sendToRegistry(change, nil)
	}
	s.rememberTools()
}

// rememberTools stores the list of a server for later runs. A list that failed is not worth storing.
func (s *Server) rememberTools() {
	if s.cfg.Remember != nil && (s.spec.Connect == messages.Lazy || s.cfg.RememberAll) && s.unlisted == "" {
		s.cfg.Remember(s.cfg.Name, s.spec, s.list)
	}
}

// hideTools closes the admission gate before it sends the change to the registry: a caller with an older snapshot is then refused
// at the gate.
func (s *Server) hideTools(c catalog.Change) {
	if s.att != nil {
		s.att.closeGate()
	}
	s.sendToRegistry(c, nil)
}

// sendToRegistry sends a change. seen, if not nil, is called when every reader sees it. It is not called if the registry dies
// before: the successor makes every server announce its tools again.
func (s *Server) sendToRegistry(c catalog.Change, seen func()) {
	c.Server, c.Of = s.cfg.Name, s.spec.InstanceOf
	// If the registry has just died the message is lost, and its successor asks for everything.
	pid, _ := s.cfg.Registry.PID()
	if seen != nil {
		s.root.Send(pid, announcement{c, seen})
		return
	}
	s.root.Send(pid, c)
}

// publishView publishes the state in the cell, and to watchers and the history if it differs in what people follow. A connected
// state is withheld while the tools are not in the catalog yet; the one before stays visible until then.
func (s *Server) publishView(before lifecycle.State) {
	now := s.state
	// The first withheld state remembers what was visible before it, for the event that follows later.
	if now.Phase == messages.Connected && s.registering {
		if !s.withheld {
			s.withheld, s.lastSeenState = true, &before
		}
		return
	}
	if s.withheld {
		before = *s.lastSeenState
		s.withheld, s.lastSeenState = false, nil
	}
	v := &View{
		Name: s.cfg.Name, Spec: s.spec, State: now, Since: s.since, Restarts: max(s.connectCount-1, 0), Attempts: s.attempts, Seen: s.seen,
		Session: s.sess, Info: s.info, Last: s.last, Tools: s.tools,
		Unlisted: s.unlisted, Overdue: s.overdue,
	}
	// Callers reach the connection through the view's link or the catalog's route; both are the same.
	if now.Phase == messages.Connected {
		v.Link = s.link
	}
	s.cfg.Cell.Publish(v, func() { s.publishChange(v, before) })
	// From here on who unsubscribes asks the server.
	if now.Phase == messages.Connected && before.Phase != messages.Connected {
		// The goroutine must not read the actor's fields.
		cell, spec := s.cfg.Cell, s.spec
		s.att.matchSubscriptions(s.sess, &cell.Subscriptions, s.cfg.Timing.ListTimeout,
			func(text string) string { return cell.redactFor(spec, text) }, s.cfg.Log)
	}
}

// publishChange records a change that people follow, and publishes it to the watchers. Other changes (a ticket, a revision) are
// visible in the view only.
func (s *Server) publishChange(v *View, before lifecycle.State) {
	now := s.state
	// Only differences that people follow make an entry, an audit record or an event. An error that is taken back because of another spec makes an
	// event only: that there is another spec has its entry.
	if now.Phase == before.Phase && now.Step == before.Step && now.Retry == before.Retry && now.NextAt.Equal(before.NextAt) &&
		now.Warm() == before.Warm() {
		if now.Cause != nil || before.Cause == nil {
			return
		}
	} else {
		s.recordChange(before)
	}
	if s.cfg.PhaseChanged != nil && now.Phase != before.Phase {
		s.cfg.PhaseChanged(v, before.Phase)
	}
	// A status is expensive to build, so it is built only if a watcher exists.
	if s.cfg.Hub.Watched() {
		st := v.Status()
		s.cfg.Hub.Publish(messages.Event{Kind: messages.EventPhase, Server: s.cfg.Name, Status: &st})
		if now.Phase == messages.NeedsAuth && before.Phase != messages.NeedsAuth {
			s.cfg.Hub.Publish(messages.Event{Kind: messages.EventAuthRequired, Server: s.cfg.Name, Status: &st})
		}
	}
}

// recordChange describes the change in a sentence, for the history and the log. Its level is warn for a failure, info for a new
// connection, debug for the steps in between.
func (s *Server) recordChange(before lifecycle.State) {
	now := s.state
	e := Entry{Time: time.Now(), Epoch: now.Epoch, Phase: now.Phase, Step: now.Step}
	// The cases are ordered: a planned attempt says more than the phase that led to it.
	level := zap.DebugLevel
	switch {
	// The supervisor's decision after a failure: the failure itself has an entry already.
	case now.Retry != before.Retry && !now.NextAt.IsZero():
		wait := time.Until(now.NextAt).Round(time.Millisecond)
		switch {
		case now.Retry == messages.RetryAt && now.Cause != nil && now.Cause.Class == messages.ClassExhausted:
			e.Text = fmt.Sprintf("not counted as a failure of the server; the next attempt is in %s", wait)
		case s.attempts == 0: // a connection that had proved stable: its end counts as no failure
			e.Text = fmt.Sprintf("it had been well; the next attempt is in %s", wait)
		case now.Retry == messages.RetryParked:
			e.Text = fmt.Sprintf("parked after %d failures in a row; the next probe is in %s", s.attempts, wait)
		default:
			e.Text = fmt.Sprintf("failure %d in a row; the next attempt is in %s", s.attempts, wait)
		}
	case now.Retry == messages.RetryNever && before.Retry != messages.RetryNever && now.Phase == before.Phase:
		e.Text = "not retried: it would fail the same way"
	case now.Phase == messages.Connected:
		level = zap.InfoLevel
		e.Text = fmt.Sprintf("connected: %s %s, protocol %s, %d tools", messages.Line(s.info.ServerInfo.Name, 80),
			messages.Line(s.info.ServerInfo.Version, 40), messages.Line(s.info.ProtocolVersion, 20), len(s.tools.Tools))
		// An isolation that could not be enforced in full deserves a warning.
		if kept := s.sess.Conn().Isolation; kept != nil {
			e.Text += "; isolated: " + messages.Line(kept.String(), 600)
			if len(kept.Missing) > 0 {
				level = zap.WarnLevel
			}
		}
	case now.Cause != nil && now.Phase != messages.Pending, now.Cause != nil && now.Step == messages.Restarting:
		level = zap.WarnLevel
		e.Text = now.Cause.Text
		// The end of stderr usually has the reason; it is kept with the failure that it explains.
		e.Stderr = lastBytes(messages.Printable(s.last.StderrTail), 2000)
	case now.Phase == messages.Disabled:
		e.Text = "disabled"
		if now.Warm() {
			e.Text = "disabled; its connection is kept"
		}
		if now.Removing {
			e.Text = "removed"
		}
	default:
		e.Text = stepText[now.Step]
	}
	// A step without a sentence says nothing to a person.
	if e.Text == "" {
		return
	}
	s.cfg.Cell.History.Add(e)
	if ce := s.cfg.Log.Check(level, e.Text); ce != nil {
		ce.Write(zap.String("server", s.cfg.Name), zap.Uint64("epoch", now.Epoch), zap.String("phase", string(now.Phase)))
	}
}

// stepText has the sentences of the steps; a step without one is not recorded.
var stepText = map[messages.Step]string{
	messages.Queued:      "waits for the start gate",
	messages.Dialing:     "the start gate let it through: opening the connection",
	messages.Handshaking: "connection open: waiting for the answer to the handshake",
	messages.Installing:  "nothing has come from the server, and the program that fetches it is at work: it is most likely installing",
	messages.Listing:     "handshake answered: waiting for the tool list",
	messages.Closing:     "waits for the old connection to release what it holds",
	messages.Idle:        "rests until it is used",
}

// lastBytes returns the end of a text, at most n bytes, without half characters.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-n:], "")
}
