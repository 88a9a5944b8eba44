package session

import (
	"context"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// greet finds the era out, as far as it is not known, and shakes hands in it.
func (s *Session) greet(ctx context.Context) (Info, *messages.Error) {
	// HTTP+SSE belongs to 2024-11-05: the modern era has no such transport.
	if s.cfg.Era == messages.EraLegacy || s.kind == messages.SSE {
		return s.initialize(ctx)
	}
	if s.cfg.Era == messages.EraModern {
		d, e := s.askDiscover(ctx)
		if e == nil && d.version == "" {
			e = s.unsupported(d.versions())
		}
		if e != nil {
			return Info{}, e
		}
		return s.settle(d), nil
	}
	if s.cfg.Known == messages.EraLegacy {
		// "The era determination is a property of the server … Clients … MAY persist it across restarts …, re-probing if the
		// cached assumption later fails."
		info, e := s.initialize(ctx)
		if e == nil || ctx.Err() != nil || s.ended("") != nil || demands(e) {
			return info, e
		}
		d, wrong := s.askDiscover(ctx)
		switch {
		case wrong == nil && d.version != "":
			return s.settle(d), nil
		case wrong != nil && demands(wrong):
			return Info{}, wrong
		}
		return Info{}, e
	}
	info, asked, e := s.probe(ctx)
	if e != nil && asked && s.ended("") != nil && ctx.Err() == nil {
		e.Err = &onProbe{e.Err}
	}
	return info, e
}

// demands reports whether a refusal says what the server wants of us: credentials, or to be left alone for a time. Nothing
// else is asked then, and no other refusal says more.
func demands(e *messages.Error) bool {
	return e.Class == messages.ClassUnauthorized || e.Class == messages.ClassThrottled || e.RetryAfter > 0
}

// onProbe marks the cause of an error with ErrOnProbe.
type onProbe struct{ cause error }

func (o *onProbe) Error() string   { return ErrOnProbe.Error() }
func (o *onProbe) Unwrap() []error { return []error{ErrOnProbe, o.cause} }

// probe asks server/discover, and initialize as well if the server is silent about that for a moment, on the same connection: so
// a server that is only slow to start costs nothing. An inquiry decides by what was answered, not by what was answered first.
//
// 2026-07-28, stdio, Backward Compatibility: probe with server/discover, and "fall back on any error that is not a
// recognized modern error". Streamable HTTP: "attempt a modern request and inspect the body of a 400 Bad Request before
// falling back".
//
// asked is false if no question can have reached the server: then it did not end because of one.
func (s *Session) probe(ctx context.Context) (info Info, asked bool, failed *messages.Error) {
	asking, stop := context.WithCancel(ctx)
	defer stop() // nobody waits for the other answers any more
	var (
		q       = inquiry{initializeFirst: s.cfg.InitializeFirst, keepsSession: s.kind == messages.Stdio || s.kind == messages.SDK}
		found   discovery
		raw     []byte
		refusal *messages.Error // of initialize
		gone    *messages.Error // what server/discover was answered, if that is the end
		answers = make(chan func(), 3)
		timer   = time.NewTimer(s.cfg.ProbeWait)
	)
	defer timer.Stop()
	ask := func(question func() (take func())) bool {
		return s.spawn(func() { answers <- question() }) // there is room for every question that is out
	}
	for {
		going := true
		switch q.next() {
		case askDiscover:
			q.discover = waited
			timer.Reset(s.cfg.ProbeWait)
			going = ask(func() func() {
				d, e := s.askDiscover(asking)
				return func() {
					found, gone = d, e
					asked = asked || e == nil || e.Outcome != messages.OutcomeNotSent
					q.discover = s.judge(d, e)
					q.both = firstOf(s.cfg.Versions, d.supported) != ""
				}
			})
		case askInitialize:
			q.initialize = waited
			going = ask(func() func() {
				body, e := s.offer(asking)
				return func() {
					raw, refusal, asked = body, e, asked || q.discover != unasked
					if q.initialize = granted; e != nil {
						q.initialize = refused
					} else {
						q.overdue = false
						timer.Reset(s.cfg.ProbeWait)
					}
				}
			})
		case askPing:
			q.pinging = true
			going = ask(func() func() {
				_, _ = s.send(asking, &request{method: "ping"}, nil) // a refusal is an answer, too
				return func() { q.pinging, q.pings = false, q.pings+1 }
			})
		case settleModern:
			return s.settle(found), asked, nil
		case settleLegacy:
			stop()
			info, failed = s.initialized(ctx, raw)
			return info, asked, failed
		case giveUp:
			switch {
			case q.discover == ended && gone == nil:
				return Info{}, asked, s.unsupported(found.versions())
			case q.discover == ended:
				return Info{}, asked, gone
			}
			return Info{}, asked, refusal
		case wait:
			select {
			case take := <-answers:
				take()
				if over := s.over(ctx); over != nil && q.next() != settleModern {
					return Info{}, asked, over
				}
			case <-timer.C:
				if q.initialize == granted && !q.rested {
					q.rested = true
					timer.Reset((lookWaits - 1) * s.cfg.ProbeWait)
				} else {
					q.overdue = true
				}
			case <-ctx.Done():
				return Info{}, asked, contextError(ctx, "before the handshake was done")
			}
		}
		if !going {
			return Info{}, asked, s.ended("connect")
		}
	}
}

// over is the error of a handshake that cannot go on, nil if it can.
func (s *Session) over(ctx context.Context) *messages.Error {
	if e := s.ended("connect"); e != nil {
		return e
	}
	if ctx.Err() != nil {
		return contextError(ctx, "before the handshake was done")
	}
	return nil
}

// judge says what an answer to server/discover means.
func (s *Session) judge(d discovery, e *messages.Error) standing {
	switch {
	case e != nil && !fallsBack(e):
		return ended
	case e != nil:
		return refused
	case d.version != "":
		return granted
	case len(d.supported) > 0 && firstOf(s.cfg.Versions, d.supported) == "":
		return ended
	}
	return refused
}

// fallsBack reports whether a refused server/discover means a server of the legacy era. 2026-07-28: "a recognized modern
// JSON-RPC error … identifies a modern server … Anything else identifies a legacy server." What says nothing about the
// server (it cannot be reached, wants credentials, asks to wait) is an end.
func fallsBack(e *messages.Error) bool {
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
		return len(supportedIn(e.Data)) == 0 // no server of the modern era forgets to say which it has
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

func (d discovery) versions() string {
	if len(d.supported) == 0 {
		return "that it does not name"
	}
	return strings.Join(d.supported, ", ")
}

// askDiscover asks what the server is. An answer that names no versions is one of a server that answers everything.
//
// 2026-07-28, Versioning: "Servers MUST implement server/discover. Clients MAY call it before sending any other requests
// to learn the server's supported versions up front". After an UnsupportedProtocolVersionError "the client SHOULD select a
// mutually supported version from the supported list and retry the request".
func (s *Session) askDiscover(ctx context.Context) (discovery, *messages.Error) {
	version := s.cfg.ModernVersions[0]
	for tries := 0; ; tries++ {
		raw, e := s.requestResult(ctx, "connect", request{method: "server/discover", era: s.speak(version)})
		if e == nil {
			d := readDiscovery(raw)
			d.version = firstOf(s.cfg.ModernVersions, d.supported)
			return d, nil
		}
		if e.Code != codeUnsupportedVersion {
			return discovery{}, e
		}
		theirs := supportedIn(e.Data)
		next := firstOf(s.cfg.ModernVersions, theirs)
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

// settle makes the session a modern one.
func (s *Session) settle(d discovery) Info {
	info := d.info
	info.Era, info.ProtocolVersion = messages.EraModern, d.version
	s.conn.Negotiated(d.version)
	s.modern.Store(s.speak(d.version))
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
