package session

import (
	"context"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Info is what a server says of itself in the handshake. Its texts are untrusted.
type Info struct {
	ServerInfo      messages.ServerInfo
	Era             messages.Era
	ProtocolVersion string
	// Instructions are for the model, as the server wrote them; often empty.
	Instructions string
	Capabilities Capabilities
}

// Handshake finds out which era the server speaks, agrees on a protocol version and on what both sides can do. It is
// called once, before everything else. A session whose handshake failed has ended: its connection is being closed.
//
// An error keeps the class that the transport gave it. A server that refuses is ClassProtocol with the server's own
// words, one that speaks only other versions ClassUnsupported. It wraps ErrOnProbe if the connection ended while the era
// was being found out.
func (s *Session) Handshake(ctx context.Context) (Info, error) {
	if s.handshakeBegun.Swap(true) {
		return Info{}, &messages.Error{Op: "connect", Class: messages.ClassInvalid, Text: "the handshake was done before"}
	}
	info, e := s.negotiateEra(ctx)
	if e != nil {
		e.Op, e.Outcome = "connect", ""
		if e.Class == messages.ClassRejected { // nothing can be done with a server that refuses this
			e.Class = messages.ClassProtocol
		}
		s.failSession(e)
		return Info{}, e
	}
	s.startBackground()
	return info, nil
}

// initializeLegacy is the handshake of the legacy era.
func (s *Session) initializeLegacy(ctx context.Context) (Info, *messages.Error) {
	raw, e := s.offerVersion(ctx)
	if e != nil {
		return Info{}, e
	}
	return s.completeInitialize(ctx, raw)
}

// offerVersion asks initialize, for the newest version first.
//
// 2025-11-25: "In the initialize request, the client MUST send a protocol version it supports. This SHOULD be the latest
// version supported by the client."
func (s *Session) offerVersion(ctx context.Context) ([]byte, *messages.Error) {
	raw, e := s.requestInitialize(ctx, s.cfg.Versions[0])
	if e == nil {
		return raw, nil
	}
	// Some servers refuse an unknown version instead of answering with one of theirs, and say which they have:
	// 2025-11-25 shows such an error with data.supported.
	theirs := supportedVersionsIn(e.Data)
	ours := firstCommon(s.cfg.Versions, theirs)
	switch {
	case len(theirs) == 0:
		return nil, e
	case ours == "" && s.cfg.Era != messages.EraLegacy && firstCommon(s.cfg.ModernVersions, theirs) != "":
		// It is of the modern era, and what it was asked before, or will be asked next, is the right question: that this
		// one was refused says nothing for good.
		return nil, e
	case ours == "":
		return nil, s.versionError(strings.Join(theirs, ", "))
	case ours == s.cfg.Versions[0]:
		return nil, e // it has what we asked for, and refuses for another reason
	}
	return s.requestInitialize(ctx, ours)
}

// completeInitialize completes the handshake of the legacy era.
func (s *Session) completeInitialize(ctx context.Context, raw []byte) (Info, *messages.Error) {
	info := readInfo(raw)
	if info.ProtocolVersion == "" {
		return Info{}, &messages.Error{
			Op: "connect", Class: messages.ClassProtocol,
			Text: "the server's answer to initialize names no protocol version",
		}
	}
	// 2025-11-25: "If the client does not support the version in the server's response, it SHOULD disconnect."
	if !slices.Contains(s.cfg.Versions, info.ProtocolVersion) {
		return Info{}, s.versionError(info.ProtocolVersion)
	}
	info.Era = messages.EraLegacy
	s.conn.Negotiated(info.ProtocolVersion)
	s.info.Store(&info)

	// 2025-11-25: "After successful initialization, the client MUST send an initialized notification to indicate it is
	// ready to begin normal operations".
	_, err := s.conn.Send(ctx, transports.Message{
		Method: "notifications/initialized", Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`),
	})
	if err != nil {
		return Info{}, s.notificationError(ctx, err)
	}
	return info, nil
}

func (s *Session) requestInitialize(ctx context.Context, version string) ([]byte, *messages.Error) {
	params := append([]byte(nil), `"protocolVersion":`...)
	params = appendString(params, version)
	params = append(params, `,"capabilities":`...)
	params = s.cfg.Handlers.appendCapabilities(params, messages.EraLegacy)
	params = append(params, `,"clientInfo":`...)
	params = s.appendClientInfo(params)
	return s.requestResult(ctx, "connect", request{method: "initialize", fields: params})
}

// appendClientInfo writes who we are.
func (s *Session) appendClientInfo(b []byte) []byte {
	b = append(b, `{"name":`...)
	b = appendString(b, strings.ToValidUTF8(s.cfg.ClientName, "?"))
	b = append(b, `,"version":`...)
	b = appendString(b, strings.ToValidUTF8(s.cfg.ClientVersion, "?"))
	return append(b, '}')
}

// notificationError is the error of a notification that could not be sent: the end of the session if that is known, because it
// says more than a broken pipe.
func (s *Session) notificationError(ctx context.Context, err error) *messages.Error {
	if e := s.endedError("connect"); e != nil {
		return e
	}
	e := translateError("connect", err)
	if ctx.Err() != nil && (e.Class == messages.ClassTimeout || e.Class == messages.ClassCanceled) {
		e = contextError(ctx, "before the handshake was done")
		e.Op = "connect"
	}
	return e
}

func (s *Session) versionError(theirs string) *messages.Error {
	ours := s.cfg.Versions
	switch s.cfg.Era {
	case messages.EraModern:
		ours = s.cfg.ModernVersions
	case messages.EraAuto, messages.EraAutoWord:
		ours = slices.Concat(s.cfg.ModernVersions, s.cfg.Versions)
	case messages.EraLegacy:
	}
	return &messages.Error{
		Op: "connect", Class: messages.ClassUnsupported,
		Text: "the server speaks protocol version " + messages.Line(theirs, 100) + ", we speak " + strings.Join(ours, ", "),
		Fix:  "use a version of the server that speaks one of these",
	}
}

// supportedVersionsIn reads data.supported of an error, as the specification's example of a refused version has it.
func supportedVersionsIn(data []byte) []string {
	return textsOf(rawjson.Member(data, "supported"), 100)
}

// readInfo takes what it can from the result of initialize: a server is not refused for a version number that is not
// a string.
func readInfo(raw []byte) (info Info) {
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "protocolVersion":
			info.ProtocolVersion, _ = rawjson.Text(value)
		case "instructions":
			info.Instructions, _ = rawjson.Text(value)
		case "serverInfo":
			info.ServerInfo = readServerInfo(value)
		case "capabilities":
			info.Capabilities = readCapabilities(value)
		}
	}
	return info
}
