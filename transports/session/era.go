package session

import (
	"errors"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DefaultModernVersions are the versions of the modern era that are spoken if Config.ModernVersions is empty, newest
// first.
func DefaultModernVersions() []string { return slices.Clone(defaultModernVersions) }

// ErrOnProbe is wrapped by the error of a handshake whose connection ended while the era was being found out: some
// servers end when they are asked what they do not know. Another connection with Config.Era or Config.Known set to
// messages.EraLegacy may work.
var ErrOnProbe = errors.New("the connection ended on the question which era the server speaks")

// modernParams is what every request of the modern era carries.
type modernParams struct {
	version string
	// meta are the members of _meta, without braces.
	meta []byte
}

// The keys of _meta that the protocol defines.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaInfo         = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// newModernParams makes what requests of a modern version carry.
//
// 2026-07-28, Per-request protocol fields: "fields marked as required MUST be included on every request" (protocolVersion,
// clientCapabilities) and "Clients SHOULD include io.modelcontextprotocol/clientInfo on every request".
func (s *Session) newModernParams(version string) *modernParams {
	b := append([]byte(nil), `"`+metaVersion+`":`...)
	b = appendString(b, version)
	b = append(b, `,"`+metaInfo+`":`...)
	b = s.appendClientInfo(b)
	b = append(b, `,"`+metaCapabilities+`":`...)
	b = s.cfg.Handlers.appendCapabilities(b, messages.EraModern)
	if s.cfg.LogLevel != "" {
		b = append(b, `,"`+metaLogLevel+`":`...)
		b = appendString(b, s.cfg.LogLevel)
	}
	return &modernParams{version: version, meta: b}
}

// Era is the era that the handshake found, EraAuto before it.
func (s *Session) Era() messages.Era {
	switch {
	case s.modern.Load() != nil:
		return messages.EraModern
	case s.info.Load() != nil:
		return messages.EraLegacy
	}
	return messages.EraAuto
}

// The codes of 2026-07-28 by which a server shows that it is a modern one.
const (
	codeHeaderMismatch      = -32020
	codeMissingCapability   = -32021
	codeUnsupportedVersion  = -32022
	codeMethodNotFound      = -32601
	codeInvalidParams       = -32602
	codeInternal            = -32603
	codeResourceNotFoundOld = -32002
)

// firstCommon is the first of ours that is among theirs, empty if none is.
func firstCommon(ours, theirs []string) string {
	for _, v := range ours {
		if slices.Contains(theirs, v) {
			return v
		}
	}
	return ""
}
