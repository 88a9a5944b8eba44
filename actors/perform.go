package actors

import (
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

// Defaults of the specification's bounds.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultCallTimeout    = 60 * time.Second
	DefaultMaxCallTimeout = 10 * time.Minute
)

func orDefault(d messages.Duration, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return time.Duration(d)
}

// performEffect carries out one effect of the machine.
func (s *Server) performEffect(effect lifecycle.Effect) {
	switch e := effect.(type) {
	case lifecycle.Ask, lifecycle.Unask, lifecycle.Report, lifecycle.Answer, lifecycle.Install, lifecycle.Decline, lifecycle.Gone:
		s.root.Send(s.sup, FromServer{s.cfg.Name, s.cfg.Epoch, s.state.Epoch, effect})
	case lifecycle.Up:
		s.att.endBound() // the connect timeout has done its work
		s.timeouts = 0
		s.connectCount++
		s.root.Send(s.sup, FromServer{s.cfg.Name, s.cfg.Epoch, s.state.Epoch, effect})
		s.armProbe()
		cell, spec := s.cfg.Cell, s.spec
		s.att.resubscribeAll(s.sess, &cell.Subscriptions, s.cfg.Timing.ListTimeout,
			func(text string) string { return cell.redactFor(spec, text) }, s.cfg.Log)
	case lifecycle.Dial:
		s.startAttempt(e.Epoch)
	case lifecycle.Greet:
		s.att.startHandshake()
	case lifecycle.List:
		s.att.startListing(s.spec, e.First, s.cfg.Timing.ListTimeout)
	case lifecycle.Coalesce:
		s.scheduleRelist(e)
	case lifecycle.Shut:
		s.stopTimers()
		drain := time.Duration(0)
		if e.Drain {
			drain = s.drainTime
		}
		s.att.shutDown(drain)
	case lifecycle.Show:
		s.showTools(e.Epoch, e.Rev)
	case lifecycle.Update:
		s.updateTools(e.Epoch, e.Rev)
	case lifecycle.Lose:
		s.hideTools(catalog.Change{Kind: catalog.Lose, Epoch: e.Epoch, Rev: e.Rev})
	case lifecycle.Withdraw:
		s.hideTools(catalog.Change{Kind: catalog.Withdraw, Epoch: e.Epoch, Rev: e.Rev})
	case lifecycle.Rest:
		change := catalog.Change{Kind: catalog.Cache, Epoch: e.Epoch, Rev: e.Rev}
		if s.tools != nil {
			change.Tools = s.tools.Tools
		}
		s.hideTools(change)
	}
}

func (s *Server) startAttempt(epoch uint64) {
	root, self, sup, name, spec := s.root, s.self, s.sup, s.cfg.Name, s.spec
	a := newAttempt(name, spec, epoch, limitsFor(spec, s.timeouts),
		func(m any) { root.Send(self, m) },
		func(epoch uint64) { root.Send(sup, AttemptReleased{name, epoch}) })
	a.prepare = s.cfg.Prepare
	s.att, s.attSpec, s.sess, s.info, s.last = a, spec, nil, nil, transports.Info{}
	s.unlisted = ""
	s.strikes, s.probing, s.dirtySince, s.futileLists, s.shownHash, s.lastProbeAnswer = 0, false, time.Time{}, 0, [32]byte{}, time.Time{}
	s.cfg.Holder.current.Store(a)

	cfg := s.cfg.Session
	cfg.Rand, cfg.Listed, cfg.Share = s.cfg.Rand, s.list, s.cfg.Cell.Share
	cfg.Era, cfg.Known, cfg.LogLevel = spec.Era, s.cfg.Holder.Era(), spec.LogLevel
	cfg.InitializeFirst = s.initializeFirst
	if cfg.Era == messages.EraAutoWord {
		cfg.Era = messages.EraAuto
	}
	if s.cfg.Handlers != nil {
		cfg.Handlers = trackAnswers(s.cfg.Handlers(name), &s.cfg.Cell.answers)
	}
	s.hookNotifications(&cfg, epoch)
	open := s.cfg.Open
	a.startDial(func() (transports.Transport, error) { return open(name, spec) }, cfg)
}

// hookNotifications sets what is done about the notifications of one connection. It runs on the session's goroutine and blocks on
// nothing.
func (s *Server) hookNotifications(cfg *session.Config, epoch uint64) {
	root, self, name, spec, hub, cell := s.root, s.self, s.cfg.Name, s.spec, s.cfg.Hub, s.cfg.Cell
	// A storm of notifications puts at most one message into the mailbox at a time.
	noted := new(atomic.Bool)
	s.changeNoted = noted
	cfg.OnToolsChanged = func() {
		if noted.CompareAndSwap(false, true) {
			root.Send(self, toolsChanged{epoch})
		}
	}
	notifier := &changeNotifier{hub: hub, name: name}
	cfg.OnResourcesChanged = notifier.noteResources
	cfg.OnPromptsChanged = notifier.notePrompts
	cfg.OnResourceUpdated = func(uri string) {
		// What nobody watches is nobody's news; what is watched may be a part of it, or hold it.
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

// scheduleRelist waits until the server has been quiet for Quiet, or has been talking for MaxWait; after failures it waits
// longer, doubling from one second to a minute.
//
// Some servers announce a change whenever they are listed. Quiet alone would list them twenty times a second, for ever; so
// it doubles with each list that brought nothing, and is what it was once the server has held its peace for MaxWait.
func (s *Server) scheduleRelist(e lifecycle.Coalesce) {
	now, most := time.Now(), s.cfg.Timing.MaxWait
	if s.dirtySince.IsZero() {
		s.dirtySince = now
		if now.Sub(s.listed) > most {
			s.futileLists = 0
		}
	}
	quiet := s.cfg.Timing.Quiet
	for range s.futileLists {
		quiet = min(2*quiet, max(quiet, most))
	}
	wait := min(quiet, s.dirtySince.Add(most).Sub(now))
	if e.Failures > 0 {
		wait = time.Second << min(e.Failures-1, 6)
	}
	if s.relist != nil {
		s.relist.Stop()
	}
	s.relistRound++
	root, self, due := s.root, s.self, relistDue{e.Epoch, s.relistRound}
	s.relist = time.AfterFunc(max(wait, 0), func() { root.Send(self, due) })
}

func (s *Server) showTools(epoch, rev uint64) {
	link := &Link{Server: s.cfg.Name, Epoch: epoch, gate: s.att.openGate(), lastHeard: s.sess.LastMessageAt}
	root, self := s.root, s.self
	link.reportError = func(err error) { root.Send(self, linkFailed{epoch, err}) }
	s.useLink(link)
	s.registering = true
	s.announceTools(epoch, rev)
}

// useLink makes the link the way to the gate that is open, under the spec in force.
func (s *Server) useLink(link *Link) {
	if s.idle != nil {
		s.idle.Stop()
	}
	link.Spec, link.lastUse, link.callQueue = s.spec, nil, nil
	if limits, some := limitsOf(s.spec, s.cfg.MaxInFlight, s.cfg.MaxQueued); some {
		link.callQueue = s.cfg.Cell.setCallLimits(limits)
	} else if s.cfg.Cell.callQueue != nil {
		s.cfg.Cell.setCallLimits(unboundedLimits) // those who wait go
	}
	if s.spec.Connect == messages.Lazy && s.spec.IdleTimeout > 0 {
		s.lastUse.Store(int64(time.Since(processStart)))
		link.lastUse = &s.lastUse
		s.armIdle(link.Epoch, time.Duration(s.spec.IdleTimeout))
	}
	s.link = link
}

// updateTools tells a changed list; an unchanged one costs nothing.
func (s *Server) updateTools(epoch, rev uint64) {
	s.listed = time.Now()
	if s.tools.Hash == s.shownHash {
		s.futileLists = min(s.futileLists+1, 16)
		return
	}
	s.futileLists = 0
	s.announceTools(epoch, rev)
}

func (s *Server) announceTools(epoch, rev uint64) {
	s.shownHash = s.tools.Hash
	change := catalog.Change{Kind: catalog.Announce, Epoch: epoch, Rev: rev, Tools: s.tools.Tools, Route: s.link}
	if s.registering {
		root, self, link := s.root, s.self, s.link
		s.sendToRegistry(change, func() { root.Send(self, linkRegistered{link}) })
	} else {
		s.sendToRegistry(change, nil)
	}
	s.rememberTools()
}

func (s *Server) rememberTools() {
	if s.cfg.Remember != nil && s.spec.Connect == messages.Lazy && s.unlisted == "" {
		s.cfg.Remember(s.cfg.Name, s.spec, s.list)
	}
}

// hideTools closes the admission gate before the registry hears of it: whoever reads an older snapshot is refused.
func (s *Server) hideTools(c catalog.Change) {
	if s.att != nil {
		s.att.closeGate()
	}
	s.sendToRegistry(c, nil)
}

// sendToRegistry sends a change. seen, if not nil, is called when every reader sees it; not if the registry dies before,
// whose successor asks for everything again.
func (s *Server) sendToRegistry(c catalog.Change, seen func()) {
	c.Server = s.cfg.Name
	pid, _ := s.cfg.Registry.PID()
	if seen != nil {
		s.root.Send(pid, announcement{c, seen})
		return
	}
	s.root.Send(pid, c)
}

// publishView makes the state visible: the cell always, watchers and the history when something changed that people follow.
func (s *Server) publishView(before lifecycle.State) {
	now := s.state
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
		Unlisted: s.unlisted,
	}
	if now.Phase == messages.Connected {
		v.Link = s.link
	}
	s.cfg.Cell.Publish(v, func() { s.publishChange(v, before) })
}

// publishChange records a change that people follow, and says it to the watchers.
func (s *Server) publishChange(v *View, before lifecycle.State) {
	now := s.state
	if now.Phase == before.Phase && now.Step == before.Step && now.Retry == before.Retry && now.NextAt.Equal(before.NextAt) &&
		now.Warm() == before.Warm() {
		return
	}
	s.recordChange(before)
	if s.cfg.PhaseChanged != nil && now.Phase != before.Phase {
		s.cfg.PhaseChanged(v, before.Phase)
	}
	if s.cfg.Hub.Watched() {
		st := v.Status()
		s.cfg.Hub.Publish(messages.Event{Kind: messages.EventPhase, Server: s.cfg.Name, Status: &st})
		if now.Phase == messages.NeedsAuth && before.Phase != messages.NeedsAuth {
			s.cfg.Hub.Publish(messages.Event{Kind: messages.EventAuthRequired, Server: s.cfg.Name, Status: &st})
		}
	}
}

// recordChange tells the change in a sentence, to the history and to the log.
func (s *Server) recordChange(before lifecycle.State) {
	now := s.state
	e := Entry{Time: time.Now(), Epoch: now.Epoch, Phase: now.Phase, Step: now.Step}
	level := zap.DebugLevel
	switch {
	case now.Retry != before.Retry && !now.NextAt.IsZero():
		wait := time.Until(now.NextAt).Round(time.Millisecond)
		switch {
		case now.Retry == messages.RetryAt && now.Cause != nil && now.Cause.Class == messages.ClassExhausted:
			e.Text = fmt.Sprintf("not counted as a failure of the server; the next attempt is in %s", wait)
		case s.attempts == 0: // the end of a connection that had proved stable counts as no failure
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
		if kept := s.sess.Conn().Isolation; kept != nil {
			e.Text += "; isolated: " + messages.Line(kept.String(), 600)
			if len(kept.Missing) > 0 {
				level = zap.WarnLevel
			}
		}
	case now.Cause != nil && now.Phase != messages.Pending, now.Cause != nil && now.Step == messages.Restarting:
		level = zap.WarnLevel
		e.Text = now.Cause.Text
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
	if e.Text == "" {
		return
	}
	s.cfg.Cell.History.Add(e)
	if ce := s.cfg.Log.Check(level, e.Text); ce != nil {
		ce.Write(zap.String("server", s.cfg.Name), zap.Uint64("epoch", now.Epoch), zap.String("phase", string(now.Phase)))
	}
}

var stepText = map[messages.Step]string{
	messages.Queued:      "waits for the start gate",
	messages.Dialing:     "the start gate let it through: opening the connection",
	messages.Handshaking: "connection open: waiting for the answer to the handshake",
	messages.Installing:  "nothing has come from the server, and the program that fetches it is at work: it is most likely installing",
	messages.Listing:     "handshake answered: waiting for the tool list",
	messages.Closing:     "waits for the old connection to release what it holds",
	messages.Idle:        "rests until it is used",
}

func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-n:], "")
}
