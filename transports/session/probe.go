package session

import (
	"context"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/definitions"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/era"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// negotiateEra finds out the era, as far as the configuration leaves it open, and performs its handshake.
func (s *Session) negotiateEra(ctx context.Context) (Info, *messages.Error) {
	// HTTP+SSE belongs to 2024-11-05: the modern era has no such transport.
	if s.cfg.Era == messages.EraLegacy || s.kind == messages.SSE {
		return s.initializeLegacy(ctx)
	}
	if s.cfg.Era == messages.EraModern {
		// The caller pinned the modern era: there is no fallback.
		d, e := s.requestDiscover(ctx)
		if e == nil && d.version == "" {
			e = s.versionError(d.versionList())
		}
		if e != nil {
			return Info{}, e
		}
		return s.adoptModern(d), nil
	}
	if s.cfg.Known == messages.EraLegacy {
		// 2026-07-28: "The era determination is a property of the server … Clients … MAY persist it across restarts …,
		// re-probing if the cached assumption later fails." So a failed initialize is followed by server/discover, unless the
		// failure has nothing to do with the era.
		info, e := s.initializeLegacy(ctx)
		agreed := s.info.Load() != nil // the server has answered initialize, and what failed is the message after it
		if e == nil || agreed || ctx.Err() != nil || s.endedError("") != nil || era.WantsAuthOrDelay(e) {
			return info, e
		}
		d, discoverErr := s.requestDiscover(ctx)
		switch {
		case discoverErr == nil && d.version != "":
			return s.adoptModern(d), nil
		case discoverErr != nil && era.WantsAuthOrDelay(discoverErr):
			return Info{}, discoverErr
		}
		// Both failed: the first error is about the era that the server had before, and so explains more.
		return Info{}, e
	}
	info, serverAsked, e := s.probeEra(ctx)
	// Only a server that got one of our questions can have ended because of it.
	if e != nil && serverAsked && s.endedError("") != nil && ctx.Err() == nil {
		e.Err = &probeError{e.Err}
	}
	return info, e
}

// probeError adds ErrOnProbe to the cause of an error.
type probeError struct{ cause error }

func (o *probeError) Error() string   { return ErrOnProbe.Error() }
func (o *probeError) Unwrap() []error { return []error{ErrOnProbe, o.cause} }

// probeEra asks server/discover, and initialize as well if the server leaves that unanswered for Config.ProbeWait, on the
// same connection: so a server that is only slow to start costs nothing. An era.Probe decides which question comes next, and
// by which answers the era is known.
//
// 2026-07-28, stdio, Backward Compatibility: probe with server/discover, and "fall back on any error that is not a recognized
// modern error". Streamable HTTP: "attempt a modern request and inspect the body of a 400 Bad Request before falling back".
//
// serverAsked is false if no question can have reached the server: then the server did not end because of one.
func (s *Session) probeEra(ctx context.Context) (info Info, serverAsked bool, failed *messages.Error) {
	askCtx, stop := context.WithCancel(ctx)
	defer stop() // the requests that are still waiting end with the probe
	var (
		q           = era.Probe{InitializeFirst: s.cfg.InitializeFirst, KeepsSession: s.kind == messages.Stdio || s.kind == messages.SDK}
		found       discovery
		raw         []byte
		initErr     *messages.Error // of initialize
		discoverErr *messages.Error // the answer to server/discover, if it ends the probe
		answers     = make(chan func(), 3)
		// Each question runs on a goroutine of its own and returns a function that records its answer. This goroutine applies
		// them, so q needs no lock.
		timer = time.NewTimer(s.cfg.ProbeWait)
	)
	defer timer.Stop()
	ask := func(question func() (apply func())) bool {
		return s.spawn(func() { answers <- question() }) // there is room for each of the three questions, so no goroutine waits here
	}
	for {
		started := true
		switch q.NextStep() {
		case era.StepDiscover:
			q.Discover = era.Pending
			// The time runs for the newest question.
			timer.Reset(s.cfg.ProbeWait)
			started = ask(func() func() {
				d, e := s.requestDiscover(askCtx)
				return func() {
					found, discoverErr = d, e
					serverAsked = serverAsked || e == nil || e.Outcome != messages.OutcomeNotSent
					q.Discover = era.Classify(e, d.version, d.supported, s.cfg.Versions)
					q.SpeaksBoth = era.FirstCommon(s.cfg.Versions, d.supported) != ""
				}
			})
		case era.StepInitialize:
			q.Initialize = era.Pending
			// offerVersion may ask twice, for two versions.
			started = ask(func() func() {
				body, e := s.offerVersion(askCtx)
				return func() {
					// An initialize before server/discover does not count: every server of the legacy era must survive it.
					raw, initErr, serverAsked = body, e, serverAsked || q.Discover != era.Unasked
					switch {
					case e == nil:
						q.Initialize, q.Overdue = era.Accepted, false
						timer.Reset(s.cfg.ProbeWait)
					case era.WantsAuthOrDelay(e):
						q.Initialize = era.Final
					default:
						q.Initialize = era.Refused
					}
				}
			})
		case era.StepPing:
			q.Pinging = true
			started = ask(func() func() {
				_, _ = s.sendRequest(askCtx, &request{method: "ping"}, nil) // a refusal of ping is a sign of life, too
				return func() { q.Pinging, q.Pings = false, q.Pings+1 }
			})
		case era.StepUseModern:
			return s.adoptModern(found), serverAsked, nil
		case era.StepUseLegacy:
			// An answer to server/discover is of no interest any more.
			stop()
			info, failed = s.completeInitialize(ctx, raw)
			return info, serverAsked, failed
		case era.StepGiveUp:
			switch {
			case q.Discover == era.Final && discoverErr == nil:
				return Info{}, serverAsked, s.versionError(found.versionList())
			case q.Discover == era.Final:
				return Info{}, serverAsked, discoverErr
			}
			return Info{}, serverAsked, initErr
		case era.StepWait:
			select {
			case apply := <-answers:
				// If the session has ended, or the caller has left, nothing can be asked; an answer that already decides for
				// the modern era needs no further question.
				apply()
				if over := s.handshakeEndedError(ctx); over != nil && q.NextStep() != era.StepUseModern {
					return Info{}, serverAsked, over
				}
			case <-timer.C:
				// The first wait after initialize ends with the second ping, the second wait (the rest of OverdueWaits) with
				// a decision.
				if q.Initialize == era.Accepted && !q.ProbeWaitPassed {
					q.ProbeWaitPassed = true
					timer.Reset((era.OverdueWaits - 1) * s.cfg.ProbeWait)
				} else {
					q.Overdue = true
				}
			case <-ctx.Done():
				return Info{}, serverAsked, outcome.ContextError(ctx, "before the handshake was done")
			}
		}
		if !started {
			return Info{}, serverAsked, s.endedError("connect")
		}
	}
}

// handshakeEndedError returns the error of a handshake that cannot go on, because the session has ended or the caller left;
// nil if it can.
func (s *Session) handshakeEndedError(ctx context.Context) *messages.Error {
	if e := s.endedError("connect"); e != nil {
		return e
	}
	if ctx.Err() != nil {
		return outcome.ContextError(ctx, "before the handshake was done")
	}
	return nil
}

// discovery is the answer to server/discover.
type discovery struct {
	// version is the newest modern version that both sides speak, empty if there is none.
	version string
	// supported are the versions that the server lists, of both eras, at most 100.
	supported []string
	info      Info
}

// versionList returns the server's versions for an error text.
func (d discovery) versionList() string {
	if len(d.supported) == 0 {
		return "that it does not name"
	}
	return strings.Join(d.supported, ", ")
}

// requestDiscover asks server/discover. An answer without versions comes from a server that answers every request; its
// discovery has no version.
//
// 2026-07-28, Versioning: "Servers MUST implement server/discover. Clients MAY call it before sending any other requests to
// learn the server's supported versions up front". After an UnsupportedProtocolVersionError "the client SHOULD select a
// mutually supported version from the supported list and retry the request".
func (s *Session) requestDiscover(ctx context.Context) (discovery, *messages.Error) {
	version := s.cfg.ModernVersions[0]
	for tries := 0; ; tries++ {
		raw, e := s.requestResult(ctx, "connect", request{method: "server/discover", era: s.newModernParams(version)})
		if e == nil {
			d := readDiscovery(raw)
			d.version = era.FirstCommon(s.cfg.ModernVersions, d.supported)
			return d, nil
		}
		if e.Code != jsonrpc.CodeUnsupportedVersion {
			return discovery{}, e
		}
		theirs := era.SupportedVersionsIn(e.Data)
		next := era.FirstCommon(s.cfg.ModernVersions, theirs)
		if next != "" && tries == 0 {
			version = next // it may be the version that was refused: then the same request is sent again, once
			continue
		}
		// The refusal lists no version, or again one that was just tried: it is an error. Otherwise the list is the answer,
		// and has nothing in common with ours.
		if len(theirs) == 0 || next != "" {
			return discovery{}, e
		}
		return discovery{supported: theirs}, nil
	}
}

// adoptModern makes the session a modern one: from here on every request carries its version and _meta.
func (s *Session) adoptModern(d discovery) Info {
	info := d.info
	info.Era, info.ProtocolVersion = messages.EraModern, d.version
	s.conn.Negotiated(d.version)
	// modern is stored before info: a goroutine that sees info must not take the session for a legacy one.
	s.modern.Store(s.newModernParams(d.version))
	s.info.Store(&info)
	return info
}

// readDiscovery reads the result of server/discover. serverInfo stands in _meta by the specification; a member of the result
// is accepted, too.
func readDiscovery(raw []byte) (d discovery) {
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "supportedVersions":
			d.supported = jsonrpc.TextsOf(value, 100)
		case "instructions":
			d.info.Instructions, _ = rawjson.Text(value)
		case "serverInfo":
			d.info.ServerInfo = definitions.ReadServerInfo(value)
		case "capabilities":
			d.info.Capabilities = readCapabilities(value)
		case "_meta":
			if info := rawjson.Member(value, metaServerInfo); info != nil {
				d.info.ServerInfo = definitions.ReadServerInfo(info)
			}
		}
	}
	return d
}
