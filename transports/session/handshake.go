package session

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Info is what a server says of itself in the handshake. Its texts are untrusted.
type Info struct {
	ServerInfo      messages.ServerInfo
	ProtocolVersion string
	// Instructions are for the model, as the server wrote them; often empty.
	Instructions string
	Capabilities Capabilities
}

// Capabilities are what a server declares that it can do.
type Capabilities struct {
	// Tools says that there are tools, ToolsListChanged that the server tells when they change.
	Tools, ToolsListChanged bool
	// Logging says that the server sends log messages.
	Logging bool
	// Raw is the whole object as sent; nil if there was none.
	Raw json.RawMessage
}

// Handshake agrees on a protocol version and what both sides can do. It is called once, before everything else but
// Ping. A session whose handshake failed has ended: its connection is being closed.
//
// An error keeps the class that the transport gave it. A server that refuses is ClassProtocol with the server's own
// words, one that speaks only other versions ClassUnsupported.
func (s *Session) Handshake(ctx context.Context) (Info, error) {
	if s.begun.Swap(true) {
		return Info{}, &messages.Error{Op: "connect", Class: messages.ClassInvalid, Text: "the handshake was done before"}
	}
	info, e := s.initialize(ctx)
	if e != nil {
		s.fail(e)
		return Info{}, e
	}
	return info, nil
}

// initialize is the handshake of the legacy era.
func (s *Session) initialize(ctx context.Context) (Info, *messages.Error) {
	// 2025-11-25: "In the initialize request, the client MUST send a protocol version it supports. This SHOULD be the
	// latest version supported by the client."
	raw, e := s.askInitialize(ctx, s.cfg.Versions[0])
	if e != nil {
		// Some servers refuse an unknown version instead of answering with one of theirs, and say which they have:
		// 2025-11-25 shows such an error with data.supported.
		theirs := supportedIn(e.Data)
		i := slices.IndexFunc(s.cfg.Versions, func(v string) bool { return slices.Contains(theirs, v) })
		switch {
		case len(theirs) == 0:
			return Info{}, e
		case i < 0:
			return Info{}, s.unsupported(strings.Join(theirs, ", "))
		case i == 0:
			return Info{}, e // it has what we asked for, and refuses for another reason
		}
		if raw, e = s.askInitialize(ctx, s.cfg.Versions[i]); e != nil {
			return Info{}, e
		}
	}
	info := readInfo(raw)
	if info.ProtocolVersion == "" {
		return Info{}, &messages.Error{
			Op: "connect", Class: messages.ClassProtocol,
			Text: "the server's answer to initialize names no protocol version",
		}
	}
	// 2025-11-25: "If the client does not support the version in the server's response, it SHOULD disconnect."
	if !slices.Contains(s.cfg.Versions, info.ProtocolVersion) {
		return Info{}, s.unsupported(info.ProtocolVersion)
	}
	s.conn.Negotiated(info.ProtocolVersion)
	s.info.Store(&info)

	// 2025-11-25: "After successful initialization, the client MUST send an initialized notification to indicate it is
	// ready to begin normal operations".
	_, err := s.conn.Send(ctx, transports.Message{
		Method: "notifications/initialized", Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`),
	})
	if err != nil {
		return Info{}, s.whyNot(ctx, err)
	}
	return info, nil
}

func (s *Session) askInitialize(ctx context.Context, version string) ([]byte, *messages.Error) {
	params := append([]byte(nil), `{"protocolVersion":`...)
	params = appendString(params, version)
	params = append(params, `,"capabilities":{},"clientInfo":{"name":`...)
	params = appendString(params, strings.ToValidUTF8(s.cfg.ClientName, "?"))
	params = append(params, `,"version":`...)
	params = appendString(params, strings.ToValidUTF8(s.cfg.ClientVersion, "?"))
	params = append(params, `}}`...)
	return s.ask(ctx, "connect", "initialize", params)
}

// whyNot is the error of a notification that could not be sent: the end of the session if that is known, because it
// says more than a broken pipe.
func (s *Session) whyNot(ctx context.Context, err error) *messages.Error {
	if e := s.ended("connect"); e != nil {
		return e
	}
	e := translate("connect", err)
	if ctx.Err() != nil && (e.Class == messages.ClassTimeout || e.Class == messages.ClassCanceled) {
		e = contextError(ctx, "before the handshake was done")
		e.Op = "connect"
	}
	return e
}

func (s *Session) unsupported(theirs string) *messages.Error {
	return &messages.Error{
		Op: "connect", Class: messages.ClassUnsupported,
		Text: "the server speaks protocol version " + messages.Line(theirs, 100) + ", we speak " +
			strings.Join(s.cfg.Versions, ", "),
		Fix: "use a version of the server that speaks one of these",
	}
}

// supportedIn reads data.supported of an error, as the specification's example of a refused version has it.
func supportedIn(data []byte) (versions []string) {
	if !isObject(data) {
		return nil
	}
	m := objectAt(data, 0, 0)
	for m.next() {
		value := m.skip()
		if string(m.key) != "supported" || !isArray(value) {
			continue
		}
		list := arrayAt(value, 0, 0)
		for list.next() {
			if v, ok := textOf(list.skip()); ok && len(versions) < 100 {
				versions = append(versions, v)
			}
		}
	}
	return versions
}

// readInfo takes what it can from the result of initialize: a server is not refused for a version number that is not
// a string.
func readInfo(raw []byte) (info Info) {
	m := objectAt(raw, 0, 0)
	for m.next() {
		value := m.skip()
		switch string(m.key) {
		case "protocolVersion":
			info.ProtocolVersion, _ = textOf(value)
		case "instructions":
			info.Instructions, _ = textOf(value)
		case "serverInfo":
			info.ServerInfo = readServerInfo(value)
		case "capabilities":
			info.Capabilities = readCapabilities(value)
		}
	}
	return info
}

func readServerInfo(raw []byte) (info messages.ServerInfo) {
	if !isObject(raw) {
		return info
	}
	m := objectAt(raw, 0, 0)
	for m.next() {
		value := m.skip()
		switch string(m.key) {
		case "name":
			info.Name, _ = textOf(value)
		case "version":
			info.Version, _ = textOf(value)
		case "title":
			info.Title, _ = textOf(value)
		}
	}
	return info
}

func readCapabilities(raw []byte) (c Capabilities) {
	if !isObject(raw) {
		return c
	}
	c.Raw = raw
	m := objectAt(raw, 0, 0)
	for m.next() {
		value := m.skip()
		declared := !isNull(value) && string(value) != "false"
		switch string(m.key) {
		case "logging":
			c.Logging = declared
		case "tools":
			c.Tools = declared
			c.ToolsListChanged = declared && isObject(value) && memberIsTrue(value, "listChanged")
		}
	}
	return c
}

func memberIsTrue(raw []byte, key string) (yes bool) {
	m := objectAt(raw, 0, 0)
	for m.next() {
		if value := m.skip(); string(m.key) == key {
			yes = string(value) == "true"
		}
	}
	return yes
}
