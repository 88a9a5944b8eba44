package web

import (
	"context"
	"maps"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// headerConnector is the header that names the connector to the proxy. No specification has it; it is this program's own choice.
const headerConnector = "X-Mcp-Connector-Id"

// ClaudeAIConfig says where a connector's proxy is, and which connector is meant. NewClaudeAI copies it; neither the caller nor
// this package changes it afterwards.
type ClaudeAIConfig struct {
	// Config describes the connection to the proxy. Its URL is the only one: none is built in. The session token of the
	// account comes from its Auth or stands in its Headers. FallbackSSE has no effect here.
	Config
	// ConnectorID is the connector's id, visible ASCII characters. Every request carries it in the header X-Mcp-Connector-Id,
	// which replaces one of that name in Headers.
	ConnectorID string
}

// ClaudeAI is streamable HTTP to a proxy that stands before the connectors of an account. No specification describes the proxy;
// all that is known of it is a type, a URL and an id. A proxy that wants the id in the path gets it in the configured URL, and a
// proxy that reads the header finds it there.
//
// When the proxy refuses the session token (401), the error has ClassUnauthorized: the person must log in again. Everything else
// is as [HTTP] has it.
type ClaudeAI struct {
	// err is the fault of the configuration that Dial returns, nil if there is none; http is nil then.
	http *HTTP
	err  *transports.Error
}

var _ transports.Transport = (*ClaudeAI)(nil)

// NewClaudeAI makes a transport and connects to nothing. A configuration that cannot work is reported by Dial, with ClassConfig.
func NewClaudeAI(cfg ClaudeAIConfig) *ClaudeAI {
	// The id becomes a header value, so that a space or a line break in it must not get there.
	if cfg.ConnectorID == "" || strings.IndexFunc(cfg.ConnectorID, func(c rune) bool { return c <= ' ' || c > '~' }) >= 0 {
		return &ClaudeAI{err: &transports.Error{Class: messages.ClassConfig, Text: "the connector's id is missing or cannot be one",
			Fix: "give the id of the connector, letters, digits and signs without spaces"}}
	}
	// The caller's map stays as it is. Header names match in any case, and two ids in one request would be ambiguous.
	headers := maps.Clone(cfg.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	maps.DeleteFunc(headers, func(name, _ string) bool { return strings.EqualFold(name, headerConnector) })
	headers[headerConnector] = cfg.ConnectorID
	cfg.Headers, cfg.FallbackSSE = headers, false
	return &ClaudeAI{http: NewHTTP(cfg.Config)}
}

// Kind implements Transport.
func (t *ClaudeAI) Kind() messages.TransportKind { return messages.ClaudeAIProxy }

// Dial implements Transport. It does not block: HTTP opens its connections with the first message.
func (t *ClaudeAI) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	if t.err != nil {
		return nil, t.err
	}
	return t.http.Dial(ctx, sink)
}
