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

// noVersion is a version of the protocol that will not exist.
const noVersion = "2020-02-30"

// handshake tries what clients of another age say first.
func (s *subject) handshake(ctx context.Context) {
	if s.era == messages.EraModern {
		s.unknownModern(ctx)
		return
	}
	s.unknownVersion(ctx)
	if s.kind != messages.SSE {
		s.eraQuestion(ctx)
	}
}

// unknownVersion asks initialize for a version that does not exist.
//
// 2025-11-25, Version Negotiation: "If the server supports the requested protocol version, it MUST respond with the same
// version. Otherwise, the server MUST respond with another protocol version it supports."
func (s *subject) unknownVersion(ctx context.Context) {
	c, err := open(ctx, s.transport())
	if err != nil {
		s.add("handshake", Fail, "it "+said(err), "")
		return
	}
	defer s.leave(c)
	g, err := c.greet(ctx, s.o.Answer+s.startAllowance(), messages.EraLegacy, noVersion)
	const fix = "answer initialize with a version that the server does support, whatever was asked for"
	var n *noAnswer
	switch {
	case err == nil && g.ProtocolVersion == noVersion:
		s.add("handshake", Fail, "it claims to speak "+noVersion+", a version that does not exist, because it was asked for it", fix)
	case err == nil:
		s.add("handshake", Pass, fmt.Sprintf("it offers %s to a client that asks for a version it cannot know",
			messages.Line(g.ProtocolVersion, 20)), "")
	case errors.As(err, &n) && !n.ended && (n.status != 0 || n.text != "did not answer in time"):
		s.add("handshake", Warn, "asked for a version it cannot know, it "+n.text, fix+"; newer clients cannot connect else")
	default:
		s.add("handshake", Fail, "asked for a version it cannot know, it "+said(err), fix)
	}
}

// startAllowance is how long the first answer of a process may take beyond that of any other answer.
func (s *subject) startAllowance() time.Duration { return s.connectTimeout() / 2 }

// eraQuestion asks server/discover first, as clients of 2026 do, and then initialize on the same connection.
func (s *subject) eraQuestion(ctx context.Context) {
	c, err := open(ctx, s.transport())
	if err != nil {
		s.add("probe", Fail, "it "+said(err), "")
		return
	}
	defer s.leave(c)
	const fix = "answer a request that comes before initialize, and is not known, with error -32601 at once"
	began := time.Now()
	c.modern = session.DefaultModernVersions()[0]
	r, asked := c.ask(ctx, s.o.Answer+s.startAllowance(), "server/discover", nil)
	took := time.Since(began)
	c.modern = ""
	_, err = c.greet(ctx, s.o.Answer, messages.EraLegacy, s.version)
	var n *noAnswer
	errors.As(asked, &n)
	switch {
	case asked == nil && err == nil:
		code := "a result"
		if r.Error != nil {
			code = fmt.Sprintf("error %d", r.Error.Code)
		}
		s.add("probe", Pass, fmt.Sprintf("asked server/discover first, as clients of 2026 do, it answers with %s after %s and "+
			"initialize goes on", code, ms(took)), "")
	case n != nil && n.status != 0 && err == nil:
		s.add("probe", Pass, fmt.Sprintf("asked server/discover first, as clients of 2026 do, it %s and initialize goes on",
			n.text), "")
	case n != nil && n.ended:
		s.add("probe", Warn, "asked server/discover first, as clients of 2026 do, it ends: they start it a second time",
			fix)
	case err != nil:
		s.add("probe", Fail, "asked server/discover first, as clients of 2026 do, it does not shake hands any more: it "+
			said(err), fix)
	default:
		s.add("probe", Warn, "asked server/discover first, as clients of 2026 do, it says nothing: they wait before they go on",
			fix)
	}
}

// unknownModern asks for a version of the modern era that does not exist.
//
// 2026-07-28: a server answers a request of a version it does not support with UnsupportedProtocolVersionError (-32022)
// whose data names the versions that it does.
func (s *subject) unknownModern(ctx context.Context) {
	c, err := open(ctx, s.transport())
	if err != nil {
		s.add("handshake", Fail, "it "+said(err), "")
		return
	}
	defer s.leave(c)
	c.modern = noVersion
	r, err := c.ask(ctx, s.o.Answer+s.startAllowance(), "tools/list", nil)
	const fix = "answer with error -32022 and the supported versions in data.supported"
	var data struct {
		Supported []string `json:"supported"`
	}
	if r.Error != nil {
		_ = json.Unmarshal(r.Error.Data, &data) // data that cannot be read names nothing
	}
	var n *noAnswer
	switch {
	case errors.As(err, &n) && n.status == 400:
		s.add("handshake", Warn, "it refuses a version that it cannot know with HTTP 400, without the error that "+
			"names those that it speaks", fix)
	case err != nil:
		s.add("handshake", Fail, "asked for a version it cannot know, it "+said(err), fix)
	case r.Error == nil:
		s.add("handshake", Fail, "it answers a request of version "+noVersion+", which does not exist, as if it knew it", fix)
	case r.Error.Code == -32022 && len(data.Supported) > 0:
		s.add("handshake", Pass, "it refuses a version that it cannot know, and names those that it speaks", "")
	default:
		s.add("handshake", Warn, fmt.Sprintf("it refuses a version that it cannot know with error %d, and names none that it "+
			"speaks", r.Error.Code), fix)
	}
}
