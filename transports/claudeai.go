package transports

import (
	"context"
	"maps"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// headerConnector names the connector to the proxy.
const headerConnector = "X-Mcp-Connector-Id"

// ClaudeAIConfig says where a connector's proxy is, and which connector is meant. It is a value: neither you nor this package changes it
// after NewClaudeAI.
type ClaudeAIConfig struct {
	// HTTPConfig is how the proxy is reached. Its URL is the only one: none is built in. The session token of the
	// account comes from its Auth or stands in its Headers. FallbackSSE means nothing here.
	HTTPConfig
	// ConnectorID is the connector's id, visible ASCII characters. It goes with every request in the header
	// X-Mcp-Connector-Id, and over one of that name in Headers.
	ConnectorID string
}

// ClaudeAI is streamable HTTP to a proxy that stands before the connectors of an account. No specification describes
// it: what is certain is a type, a URL and an id. How a proxy wants to be told the id is its own affair; one that wants it
// in the path has it in the URL, and one that knows our header finds it there.
//
// A session token that the proxy refuses (401) is ClassUnauthorized: the person must log in again. Everything else is as
// HTTP has it.
type ClaudeAI struct {
	http *HTTP
	err  *Error
}

var _ Transport = (*ClaudeAI)(nil)

// NewClaudeAI makes a transport. A configuration that cannot work is reported by Dial.
func NewClaudeAI(cfg ClaudeAIConfig) *ClaudeAI {
	if cfg.ConnectorID == "" || strings.IndexFunc(cfg.ConnectorID, func(c rune) bool { return c <= ' ' || c > '~' }) >= 0 {
		return &ClaudeAI{err: &Error{Class: messages.ClassConfig, Text: "the connector's id is missing or cannot be one",
			Fix: "give the id of the connector, letters, digits and signs without spaces"}}
	}
	headers := maps.Clone(cfg.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	maps.DeleteFunc(headers, func(name, _ string) bool { return strings.EqualFold(name, headerConnector) })
	headers[headerConnector] = cfg.ConnectorID
	cfg.Headers, cfg.FallbackSSE = headers, false
	return &ClaudeAI{http: NewHTTP(cfg.HTTPConfig)}
}

// Kind implements Transport.
func (t *ClaudeAI) Kind() messages.TransportKind { return messages.ClaudeAIProxy }

// Dial implements Transport. It does not block.
func (t *ClaudeAI) Dial(ctx context.Context, sink Sink) (Conn, error) {
	if t.err != nil {
		return nil, t.err
	}
	return t.http.Dial(ctx, sink)
}
