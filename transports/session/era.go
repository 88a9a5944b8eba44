package session

import (
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// ErrOnProbe is wrapped by the error of a handshake whose connection ended while the session was finding out the era:
// some servers end when they get a request that they do not know. Another connection with Config.Era or Config.Known
// set to messages.EraLegacy may work.
var ErrOnProbe = errors.New("the connection ended on the question which era the server speaks")

// modernParams are the parts of a request that are the same for every request of one modern session. They are built once,
// because calls are many.
type modernParams struct {
	version string
	// version goes with the message, so that the HTTP transport can set its header.
	meta []byte
	// identity are the version and the name of this client in meta, capabilities and logLevel the values of the other members.
	identity, capabilities []byte
	logLevel               string
	// handlers answer the questions about a request, unless its caller takes them.
	handlers Handlers
}

// The keys of _meta that the protocol defines.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaInfo         = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
)

// newModernParams builds the version and the _meta of the requests in a modern version.
//
// 2026-07-28, Per-request protocol fields: "fields marked as required MUST be included on every request" (protocolVersion,
// clientCapabilities) and "Clients SHOULD include io.modelcontextprotocol/clientInfo on every request".
func (s *Session) newModernParams(version string) *modernParams {
	b := append([]byte(nil), `"`+metaVersion+`":`...)
	b = jsonrpc.AppendString(b, version)
	b = append(b, `,"`+metaInfo+`":`...)
	m := &modernParams{version: version, identity: s.appendClientInfo(b), logLevel: s.cfg.LogLevel, handlers: s.cfg.Handlers}
	m.capabilities = s.cfg.Handlers.appendCapabilities(nil, messages.EraModern)
	m.meta = m.appendFor(nil, &Options{})
	return m
}

// appendFor appends the members of _meta with what a caller wishes in the place of the session's own.
func (m *modernParams) appendFor(b []byte, o *Options) []byte {
	b = append(append(b, m.identity...), `,"`+metaCapabilities+`":`...)
	if len(o.Capabilities) > 0 {
		declared := []byte(o.Capabilities)
		if !o.PassInput {
			declared = m.handlers.answerable(declared)
		}
		b = jsonrpc.AppendOneLine(b, declared)
	} else {
		b = append(b, m.capabilities...)
	}
	level := o.LogLevel
	if level == "" {
		level = m.logLevel
	}
	if level != "" {
		b = append(b, `,"`+metaLogLevel+`":`...)
		b = jsonrpc.AppendString(b, level)
	}
	return b
}

// Era returns the era that the handshake found, EraAuto before its end.
func (s *Session) Era() messages.Era {
	switch {
	case s.modern.Load() != nil:
		return messages.EraModern
	case s.info.Load() != nil:
		return messages.EraLegacy
	}
	return messages.EraAuto
}
