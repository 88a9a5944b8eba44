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
	b = s.appendClientInfo(b)
	b = append(b, `,"`+metaCapabilities+`":`...)
	b = s.cfg.Handlers.appendCapabilities(b, messages.EraModern)
	if s.cfg.LogLevel != "" {
		b = append(b, `,"`+metaLogLevel+`":`...)
		b = jsonrpc.AppendString(b, s.cfg.LogLevel)
	}
	return &modernParams{version: version, meta: b}
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
