package session

import (
	"context"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
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

// probe asks server/discover first. A server that stays silent is asked initialize as well after a moment, on the same
// connection, and whichever it answers decides: so a server that is only slow to start costs nothing.
//
// 2026-07-28, stdio, Backward Compatibility: probe with server/discover, and "fall back on any error that is not a
// recognized modern error". Streamable HTTP: "attempt a modern request and inspect the body of a 400 Bad Request before
// falling back".
//
// asked is false if the question cannot have reached the server: then it did not end because of it.
func (s *Session) probe(ctx context.Context) (info Info, asked bool, failed *messages.Error) {
	type found struct {
		d discovery
		e *messages.Error
	}
	type greeted struct {
		raw []byte
		e   *messages.Error
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	discovered, initialized := make(chan found, 1), make(chan greeted, 1)
	if !s.spawn(func() {
		d, e := s.askDiscover(asking)
		discovered <- found{d, e}
	}) {
		return Info{}, asked, s.ended("connect")
	}
	timer := time.NewTimer(s.cfg.ProbeWait)
	defer timer.Stop()
	silent := timer.C
	var refusal *messages.Error // of initialize, while discover may still be answered
	for {
		select {
		case f := <-discovered:
			discovered = nil
			asked = f.e == nil || f.e.Outcome != messages.OutcomeNotSent
			switch {
			case f.e == nil && f.d.version != "":
				return s.settle(f.d), asked, nil
			case f.e != nil && !fallsBack(f.e) || s.ended("") != nil || ctx.Err() != nil:
				return Info{}, asked, f.e
			case f.e == nil && firstOf(s.cfg.Versions, f.d.supported) == "" && len(f.d.supported) > 0:
				return Info{}, asked, s.unsupported(f.d.versions())
			case refusal != nil:
				return Info{}, asked, refusal
			case silent != nil: // initialize was not asked yet
				info, failed = s.initialize(ctx)
				return info, asked, failed
			}
		case g := <-initialized:
			if g.e == nil {
				stop() // nobody waits for the other answer any more
				info, failed = s.initialized(ctx, g.raw)
				return info, true, failed // it has read what was sent before
			}
			if discovered == nil || ctx.Err() != nil || s.ended("") != nil {
				return Info{}, true, g.e
			}
			refusal, initialized = g.e, nil
		case <-silent:
			silent = nil
			if !s.spawn(func() {
				raw, e := s.offer(asking)
				initialized <- greeted{raw, e}
			}) {
				return Info{}, asked, s.ended("connect")
			}
		}
	}
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
	m := objectAt(raw, 0, 0)
	for m.next() {
		value := m.skip()
		switch string(m.key) {
		case "supportedVersions":
			d.supported = textsOf(value, 100)
		case "instructions":
			d.info.Instructions, _ = textOf(value)
		case "serverInfo":
			d.info.ServerInfo = readServerInfo(value)
		case "capabilities":
			d.info.Capabilities = readCapabilities(value)
		case "_meta":
			if info := memberOf(value, metaServerInfo); info != nil {
				d.info.ServerInfo = readServerInfo(info)
			}
		}
	}
	return d
}

// textsOf is the strings of an array, at most limit.
func textsOf(value []byte, limit int) (texts []string) {
	if !isArray(value) {
		return nil
	}
	list := arrayAt(value, 0, 0)
	for list.next() {
		if v, ok := textOf(list.skip()); ok && len(texts) < limit {
			texts = append(texts, v)
		}
	}
	return texts
}

// memberOf is one member of an object, nil if it is not there or raw is no object.
func memberOf(raw []byte, key string) (found []byte) {
	if !isObject(raw) {
		return nil
	}
	m := objectAt(raw, 0, 0)
	for m.next() {
		if value := m.skip(); string(m.key) == key {
			found = value
		}
	}
	return found
}
