package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// noVersion and noModernVersion are protocol versions that will never exist, because there are no such days. A server rightly takes
// a version before the first modern one for one of the legacy era, so that the modern one stands after all that exist.
const (
	noVersion       = "2020-02-30"
	noModernVersion = "2999-02-30"
)

// checkHandshake tries the first messages of clients that are older or newer than the server. HTTP+SSE is left out of the
// probe, because no client of 2026 uses it.
func (s *serverCheck) checkHandshake(ctx context.Context) {
	if s.era == messages.EraModern {
		s.checkUnknownModern(ctx)
		return
	}
	s.checkUnknownVersion(ctx)
	if s.kind != messages.SSE {
		s.checkEraProbe(ctx)
	}
}

// checkUnknownVersion sends initialize with a version that does not exist.
func (s *serverCheck) checkUnknownVersion(ctx context.Context) {
	c, err := openRawClient(ctx, s.newTransport())
	if err != nil {
		s.addFinding("handshake", Fail, "it "+failureText(err), "")
		return
	}
	defer s.closeClient(c)
	// The connection is new, so the answer includes the start of the process.
	g, err := c.shakeHands(ctx, s.o.Answer+s.startAllowance(), messages.EraLegacy, noVersion)
	const fix = "answer initialize with a version that the server does support, whatever was asked for"
	var n *noAnswerError
	switch {
	// The specification has a server answer with a version of its own; an echo promises features that the server cannot know.
	case err == nil && g.ProtocolVersion == noVersion:
		s.addFinding("handshake", Fail, "it claims to speak "+noVersion+", a version that does not exist, because it was asked for it", fix)
	case err == nil:
		s.addFinding("handshake", Pass, fmt.Sprintf("it offers %s to a client that asks for a version it cannot know",
			messages.Line(g.ProtocolVersion, 20)), "")
	// A refusal is an answer at least; silence and the end of the connection are worse.
	case errors.As(err, &n) && !n.ended && (n.status != 0 || n.text != "did not answer in time"):
		s.addFinding("handshake", Warn, "asked for a version it cannot know, it "+n.text, fix+"; newer clients cannot connect else")
	default:
		s.addFinding("handshake", Fail, "asked for a version it cannot know, it "+failureText(err), fix)
	}
}

// startAllowance is the time that the first answer of a process may take beyond that of later ones.
func (s *serverCheck) startAllowance() time.Duration { return s.connectTimeout() / 2 }

// checkEraProbe sends server/discover first, as clients of 2026 do, and then initialize on the same connection. A legacy server
// must survive the first and answer the second.
func (s *serverCheck) checkEraProbe(ctx context.Context) {
	c, err := openRawClient(ctx, s.newTransport())
	if err != nil {
		s.addFinding("probe", Fail, "it "+failureText(err), "")
		return
	}
	defer s.closeClient(c)
	const fix = "answer a request that comes before initialize, and is not known, with error -32601 at once"
	began := time.Now()
	// The probe carries the modern members; initialize afterwards must not.
	c.modern = session.DefaultModernVersions()[0]
	r, probeErr := c.callMethod(ctx, s.o.Answer+s.startAllowance(), "server/discover", nil)
	took := time.Since(began)
	c.modern = ""
	_, err = c.shakeHands(ctx, s.o.Answer, messages.EraLegacy, s.version)
	var n *noAnswerError
	errors.As(probeErr, &n)
	switch {
	case probeErr == nil && err == nil:
		code := "a result"
		if r.Error != nil {
			code = fmt.Sprintf("error %d", r.Error.Code)
		}
		s.addFinding("probe", Pass, fmt.Sprintf("asked server/discover first, as clients of 2026 do, it answers with %s after %s and "+
			"initialize goes on", code, durationText(took)), "")
	case n != nil && n.status != 0 && err == nil:
		s.addFinding("probe", Pass, fmt.Sprintf("asked server/discover first, as clients of 2026 do, it %s and initialize goes on",
			n.text), "")
	// This costs each client of 2026 a second start, and nothing else: the session falls back to a new process by itself.
	case n != nil && n.ended:
		s.addFinding("probe", Warn, "asked server/discover first, as clients of 2026 do, it ends: they start it a second time",
			fix)
	case err != nil:
		s.addFinding("probe", Fail, "asked server/discover first, as clients of 2026 do, it does not shake hands any more: it "+
			failureText(err), fix)
	default:
		s.addFinding("probe", Warn, "asked server/discover first, as clients of 2026 do, it says nothing: they wait before they go on",
			fix)
	}
}

// checkUnknownModern sends a request of a modern version that does not exist.
func (s *serverCheck) checkUnknownModern(ctx context.Context) {
	c, err := openRawClient(ctx, s.newTransport())
	if err != nil {
		s.addFinding("handshake", Fail, "it "+failureText(err), "")
		return
	}
	defer s.closeClient(c)
	c.modern = noModernVersion
	r, err := c.callMethod(ctx, s.o.Answer+s.startAllowance(), "tools/list", nil)
	const fix = "answer with error -32022 and the supported versions in data.supported"
	var data struct {
		Supported []string `json:"supported"`
	}
	if r.Error != nil {
		// Unreadable data names no versions.
		_ = json.Unmarshal(r.Error.Data, &data)
	}
	var n *noAnswerError
	switch {
	// Without data.supported a client of several versions cannot choose one that both sides speak.
	case errors.As(err, &n) && n.status == 400:
		s.addFinding("handshake", Warn, "it refuses a version that it cannot know with HTTP 400, without the error that "+
			"names those that it speaks", fix)
	case err != nil:
		s.addFinding("handshake", Fail, "asked for a version it cannot know, it "+failureText(err), fix)
	case r.Error == nil:
		s.addFinding("handshake", Fail, "it answers a request of version "+noModernVersion+", which does not exist, as if it knew it", fix)
	case r.Error.Code == -32022 && len(data.Supported) > 0:
		s.addFinding("handshake", Pass, "it refuses a version that it cannot know, and names those that it speaks", "")
	default:
		s.addFinding("handshake", Warn, fmt.Sprintf("it refuses a version that it cannot know with error %d, and names none that it "+
			"speaks", r.Error.Code), fix)
	}
}
