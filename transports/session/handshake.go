package session

import (
	"context"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/definitions"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/era"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// Info is a server's description of itself from the handshake. Its texts are untrusted.
type Info struct {
	ServerInfo      messages.ServerInfo
	Era             messages.Era
	ProtocolVersion string
	// Instructions are the server's instructions for the model, as it wrote them; often empty.
	Instructions string
	Capabilities Capabilities
}

// Handshake finds out which era the server speaks, and agrees with it on a protocol version and on the capabilities of both
// sides. The owner calls it once, before everything else; a second call is an error. A session whose handshake failed has
// ended: its connection is being closed.
//
// An error keeps the class that the transport gave it. A server that refuses is ClassProtocol with the server's own words,
// one that speaks only other versions ClassUnsupported. It wraps ErrOnProbe if the connection ended while the session was
// finding out the era. ctx bounds the handshake; there is no other bound.
func (s *Session) Handshake(ctx context.Context) (Info, error) {
	if s.handshakeBegun.Swap(true) {
		return Info{}, &messages.Error{Op: "connect", Class: messages.ClassInvalid, Text: "the handshake was done before"}
	}
	info, e := s.negotiateEra(ctx)
	if e != nil {
		e.Op, e.Outcome = "connect", ""
		// A rejected call can be corrected by its caller; a rejected handshake cannot.
		if e.Class == messages.ClassRejected { // nothing can be done with a server that refuses this
			e.Class = messages.ClassProtocol
		}
		s.failSession(e)
		return Info{}, e
	}
	s.startBackground()
	return info, nil
}

// initializeLegacy performs the handshake of the legacy era: initialize, then notifications/initialized.
func (s *Session) initializeLegacy(ctx context.Context) (Info, *messages.Error) {
	raw, e := s.offerVersion(ctx)
	if e != nil {
		return Info{}, e
	}
	return s.completeInitialize(ctx, raw)
}

// offerVersion asks initialize, first for the newest version that we speak, and once more for another if the server's refusal
// lists one that both speak.
//
// 2025-11-25: "In the initialize request, the client MUST send a protocol version it supports. This SHOULD be the latest
// version supported by the client."
func (s *Session) offerVersion(ctx context.Context) ([]byte, *messages.Error) {
	raw, e := s.requestInitialize(ctx, s.cfg.Versions[0])
	if e == nil {
		return raw, nil
	}
	// Some servers refuse an unknown version instead of answering with one of theirs, and list their versions in the error:
	// 2025-11-25 shows such an error with data.supported.
	theirs := era.SupportedVersionsIn(e.Data)
	ours := era.FirstCommon(s.cfg.Versions, theirs)
	switch {
	case len(theirs) == 0:
		return nil, e
	case ours == "" && s.cfg.Era != messages.EraLegacy && era.FirstCommon(s.cfg.ModernVersions, theirs) != "":
		// The server is of the modern era, so server/discover, which was asked before or comes next, is the right question;
		// that it refused initialize says nothing else.
		return nil, e
	case ours == "":
		return nil, s.versionError(strings.Join(theirs, ", "))
	case ours == s.cfg.Versions[0]:
		return nil, e // the server has the version that we offered, and refuses for another reason
	}
	return s.requestInitialize(ctx, ours)
}

// completeInitialize checks the server's answer to initialize, announces the version to the transport and tells the server
// that we are ready. From here on Info has a value.
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
	// The transport needs the version before the next message: over HTTP it goes into a header.
	s.conn.Negotiated(info.ProtocolVersion)
	s.info.Store(&info)

	// 2025-11-25: "After successful initialization, the client MUST send an initialized notification to indicate it is
	// ready to begin normal operations".
	_, err := s.sendMessage(ctx, transports.Message{
		Method: "notifications/initialized", Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), Caller: s.caller,
	})
	if err != nil {
		return Info{}, s.notificationError(ctx, err)
	}
	return info, nil
}

// requestInitialize sends one initialize for one version and returns the server's result.
func (s *Session) requestInitialize(ctx context.Context, version string) ([]byte, *messages.Error) {
	params := append([]byte(nil), `"protocolVersion":`...)
	params = jsonrpc.AppendString(params, version)
	params = append(params, `,"capabilities":`...)
	params = s.cfg.Handlers.appendCapabilities(params, messages.EraLegacy)
	params = append(params, `,"clientInfo":`...)
	params = s.appendClientInfo(params)
	return s.requestResult(ctx, "connect", request{method: "initialize", fields: params})
}

// appendClientInfo appends the object clientInfo. Names come from a caller, so bytes that are not valid UTF-8 become "?".
func (s *Session) appendClientInfo(b []byte) []byte {
	b = append(b, `{"name":`...)
	b = jsonrpc.AppendString(b, strings.ToValidUTF8(s.cfg.ClientName, "?"))
	b = append(b, `,"version":`...)
	b = jsonrpc.AppendString(b, strings.ToValidUTF8(s.cfg.ClientVersion, "?"))
	return append(b, '}')
}

// notificationError returns the error of a notification that could not be sent: the reason of the session's end if the
// session has ended, because that explains more than a broken pipe.
func (s *Session) notificationError(ctx context.Context, err error) *messages.Error {
	if e := s.endedError("connect"); e != nil {
		return e
	}
	e := outcome.TranslateError("connect", err)
	if ctx.Err() != nil && (e.Class == messages.ClassTimeout || e.Class == messages.ClassCanceled) {
		e = outcome.ContextError(ctx, "before the handshake was done")
		e.Op = "connect"
	}
	return e
}

// versionError returns the error for a server whose versions have nothing in common with those of the configured era.
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

// readInfo reads the result of initialize as far as it can: members of a wrong type stay empty, because a server is not
// refused for a version number of itself that is no string.
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
			info.ServerInfo = definitions.ReadServerInfo(value)
		case "capabilities":
			info.Capabilities = readCapabilities(value)
		}
	}
	return info
}
