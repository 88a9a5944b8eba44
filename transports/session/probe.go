package session

import (
	"context"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// negotiateEra finds the era out, as far as it is not known, and shakes hands in it.
func (s *Session) negotiateEra(ctx context.Context) (Info, *messages.Error) {
	// HTTP+SSE belongs to 2024-11-05: the modern era has no such transport.
	if s.cfg.Era == messages.EraLegacy || s.kind == messages.SSE {
		return s.initializeLegacy(ctx)
	}
	if s.cfg.Era == messages.EraModern {
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
		// "The era determination is a property of the server … Clients … MAY persist it across restarts …, re-probing if the
		// cached assumption later fails."
		info, e := s.initializeLegacy(ctx)
		if e == nil || ctx.Err() != nil || s.endedError("") != nil || wantsAuthOrDelay(e) {
			return info, e
		}
		d, discoverErr := s.requestDiscover(ctx)
		switch {
		case discoverErr == nil && d.version != "":
			return s.adoptModern(d), nil
		case discoverErr != nil && wantsAuthOrDelay(discoverErr):
			return Info{}, discoverErr
		}
		return Info{}, e
	}
	info, serverAsked, e := s.probeEra(ctx)
	if e != nil && serverAsked && s.endedError("") != nil && ctx.Err() == nil {
		e.Err = &probeError{e.Err}
	}
	return info, e
}

// wantsAuthOrDelay reports whether a refusal says what the server wants of us: credentials, or to be left alone for a time. Nothing
// else is asked then, and no other refusal says more.
func wantsAuthOrDelay(e *messages.Error) bool {
	return e.Class == messages.ClassUnauthorized || e.Class == messages.ClassThrottled || e.RetryAfter > 0
}

// probeError marks the cause of an error with ErrOnProbe.
type probeError struct{ cause error }

func (o *probeError) Error() string   { return ErrOnProbe.Error() }
func (o *probeError) Unwrap() []error { return []error{ErrOnProbe, o.cause} }

// probeEra asks server/discover, and initialize as well if the server is silent about that for a moment, on the same connection: so
// a server that is only slow to start costs nothing. An inquiry decides by what was answered, not by what was answered first.
//
// 2026-07-28, stdio, Backward Compatibility: probe with server/discover, and "fall back on any error that is not a
// recognized modern error". Streamable HTTP: "attempt a modern request and inspect the body of a 400 Bad Request before
// falling back".
//
// asked is false if no question can have reached the server: then it did not end because of one.
func (s *Session) probeEra(ctx context.Context) (info Info, serverAsked bool, failed *messages.Error) {
	askCtx, stop := context.WithCancel(ctx)
	defer stop() // nobody waits for the other answers any more
	var (
		q           = eraProbe{initializeFirst: s.cfg.InitializeFirst, keepsSession: s.kind == messages.Stdio || s.kind == messages.SDK}
		found       discovery
		raw         []byte
		initErr     *messages.Error // of initialize
		discoverErr *messages.Error // what server/discover was answered, if that is the end
		answers     = make(chan func(), 3)
		timer       = time.NewTimer(s.cfg.ProbeWait)
	)
	defer timer.Stop()
	ask := func(question func() (apply func())) bool {
		return s.spawn(func() { answers <- question() }) // there is room for every question that is out
	}
	for {
		started := true
		switch q.nextStep() {
		case stepDiscover:
			q.discover = probePending
			timer.Reset(s.cfg.ProbeWait)
			started = ask(func() func() {
				d, e := s.requestDiscover(askCtx)
				return func() {
					found, discoverErr = d, e
					serverAsked = serverAsked || e == nil || e.Outcome != messages.OutcomeNotSent
					q.discover = s.classifyDiscovery(d, e)
					q.speaksBoth = firstCommon(s.cfg.Versions, d.supported) != ""
				}
			})
		case stepInitialize:
			q.initialize = probePending
			started = ask(func() func() {
				body, e := s.offerVersion(askCtx)
				return func() {
					raw, initErr, serverAsked = body, e, serverAsked || q.discover != probeUnasked
					if q.initialize = probeAccepted; e != nil {
						q.initialize = probeRefused
					} else {
						q.overdue = false
						timer.Reset(s.cfg.ProbeWait)
					}
				}
			})
		case stepPing:
			q.pinging = true
			started = ask(func() func() {
				_, _ = s.sendRequest(askCtx, &request{method: "ping"}, nil) // a refusal is an answer, too
				return func() { q.pinging, q.pings = false, q.pings+1 }
			})
		case stepUseModern:
			return s.adoptModern(found), serverAsked, nil
		case stepUseLegacy:
			stop()
			info, failed = s.completeInitialize(ctx, raw)
			return info, serverAsked, failed
		case stepGiveUp:
			switch {
			case q.discover == probeFinal && discoverErr == nil:
				return Info{}, serverAsked, s.versionError(found.versionList())
			case q.discover == probeFinal:
				return Info{}, serverAsked, discoverErr
			}
			return Info{}, serverAsked, initErr
		case stepWait:
			select {
			case apply := <-answers:
				apply()
				if over := s.handshakeEndedError(ctx); over != nil && q.nextStep() != stepUseModern {
					return Info{}, serverAsked, over
				}
			case <-timer.C:
				if q.initialize == probeAccepted && !q.probeWaitPassed {
					q.probeWaitPassed = true
					timer.Reset((overdueWaits - 1) * s.cfg.ProbeWait)
				} else {
					q.overdue = true
				}
			case <-ctx.Done():
				return Info{}, serverAsked, contextError(ctx, "before the handshake was done")
			}
		}
		if !started {
			return Info{}, serverAsked, s.endedError("connect")
		}
	}
}

// handshakeEndedError is the error of a handshake that cannot go on, nil if it can.
func (s *Session) handshakeEndedError(ctx context.Context) *messages.Error {
	if e := s.endedError("connect"); e != nil {
		return e
	}
	if ctx.Err() != nil {
		return contextError(ctx, "before the handshake was done")
	}
	return nil
}

// classifyDiscovery says what an answer to server/discover means.
func (s *Session) classifyDiscovery(d discovery, e *messages.Error) probeState {
	switch {
	case e != nil && !indicatesLegacy(e):
		return probeFinal
	case e != nil:
		return probeRefused
	case d.version != "":
		return probeAccepted
	case len(d.supported) > 0 && firstCommon(s.cfg.Versions, d.supported) == "":
		return probeFinal
	}
	return probeRefused
}

// indicatesLegacy reports whether a refused server/discover means a server of the legacy era. 2026-07-28: "a recognized modern
// JSON-RPC error … identifies a modern server … Anything else identifies a legacy server." What says nothing about the
// server (it cannot be reached, wants credentials, asks to wait) is an end.
func indicatesLegacy(e *messages.Error) bool {
	switch e.Class {
	case messages.ClassUnauthorized, messages.ClassThrottled, messages.ClassCanceled, messages.ClassExited,
		messages.ClassPanic, messages.ClassConfig, messages.ClassMissing:
		return false
	case messages.ClassNetwork:
		if e.Outcome == messages.OutcomeNotSent {
			return false // nobody is there
		}
	}
	switch e.Code {
	case codeHeaderMismatch, codeMissingCapability:
		return false
	case codeUnsupportedVersion:
		return len(supportedVersionsIn(e.Data)) == 0 // no server of the modern era forgets to say which it has
	}
	return true
}

// discovery is the answer to server/discover.
type discovery struct {
	// version is the newest modern version that both sides speak, empty if there is none.
	version   string
	supported []string
	info      Info
}

func (d discovery) versionList() string {
	if len(d.supported) == 0 {
		return "that it does not name"
	}
	return strings.Join(d.supported, ", ")
}

// requestDiscover asks what the server is. An answer that names no versions is one of a server that answers everything.
//
// 2026-07-28, Versioning: "Servers MUST implement server/discover. Clients MAY call it before sending any other requests
// to learn the server's supported versions up front". After an UnsupportedProtocolVersionError "the client SHOULD select a
// mutually supported version from the supported list and retry the request".
func (s *Session) requestDiscover(ctx context.Context) (discovery, *messages.Error) {
	version := s.cfg.ModernVersions[0]
	for tries := 0; ; tries++ {
		raw, e := s.requestResult(ctx, "connect", request{method: "server/discover", era: s.newModernParams(version)})
		if e == nil {
			d := readDiscovery(raw)
			d.version = firstCommon(s.cfg.ModernVersions, d.supported)
			return d, nil
		}
		if e.Code != codeUnsupportedVersion {
			return discovery{}, e
		}
		theirs := supportedVersionsIn(e.Data)
		next := firstCommon(s.cfg.ModernVersions, theirs)
		if next != "" && tries == 0 {
			version = next // it may be the very one that was refused: then the retry is the same request, once
			continue
		}
		if len(theirs) == 0 || next != "" {
			return discovery{}, e
		}
		return discovery{supported: theirs}, nil
	}
}

// adoptModern makes the session a modern one.
func (s *Session) adoptModern(d discovery) Info {
	info := d.info
	info.Era, info.ProtocolVersion = messages.EraModern, d.version
	s.conn.Negotiated(d.version)
	s.modern.Store(s.newModernParams(d.version))
	s.info.Store(&info)
	return info
}

func readDiscovery(raw []byte) (d discovery) {
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "supportedVersions":
			d.supported = textsOf(value, 100)
		case "instructions":
			d.info.Instructions, _ = rawjson.Text(value)
		case "serverInfo":
			d.info.ServerInfo = readServerInfo(value)
		case "capabilities":
			d.info.Capabilities = readCapabilities(value)
		case "_meta":
			if info := rawjson.Member(value, metaServerInfo); info != nil {
				d.info.ServerInfo = readServerInfo(info)
			}
		}
	}
	return d
}

// textsOf is the strings of an array, at most limit.
func textsOf(value []byte, limit int) (texts []string) {
	if !rawjson.IsArray(value) {
		return nil
	}
	list := rawjson.ArrayAt(value, 0, 0)
	for list.Next() {
		if v, ok := rawjson.Text(list.Skip()); ok && len(texts) < limit {
			texts = append(texts, v)
		}
	}
	return texts
}
