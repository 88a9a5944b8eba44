package messages

// TransportKind names how a server is reached.
type TransportKind string

const (
	// Stdio is a child process that speaks over its standard input and output.
	Stdio TransportKind = "stdio"
	// HTTP is streamable HTTP. A spec with a URL and no kind is HTTP with a fall-back to SSE (FallbackSSE).
	HTTP TransportKind = "http"
	// SSE is the HTTP+SSE transport of 2024-11-05.
	SSE TransportKind = "sse"
	// SDK is a server that lives in the same Go program, registered with the manager under Spec.Name.
	SDK TransportKind = "sdk"
	// WebSocket is one JSON-RPC message per text frame, subprotocol "mcp".
	WebSocket TransportKind = "websocket"
	// ClaudeAIProxy is streamable HTTP to a connector proxy, with the connector's id.
	ClaudeAIProxy TransportKind = "claudeai-proxy"
)

// transportKinds is the table of the kinds. A new kind is a constant, its row here and one in transports/kinds, which makes the
// transport; everything else asks the row.
var transportKinds = []struct {
	kind TransportKind
	// schemes are those of the URLs by which a server of the kind is reached; none for a server of this machine.
	schemes []string
	// paired says that the answer to a request comes with the HTTP response to it.
	paired bool
}{
	{kind: Stdio},
	{kind: HTTP, schemes: httpSchemes, paired: true},
	{kind: SSE, schemes: httpSchemes},
	{kind: SDK},
	// People write the address of a WebSocket with http, too.
	{kind: WebSocket, schemes: []string{"ws", "wss", "http", "https"}},
	{kind: ClaudeAIProxy, schemes: httpSchemes, paired: true},
}

var httpSchemes = []string{"http", "https"}

// TransportKinds lists every kind.
var TransportKinds = func() (all []TransportKind) {
	for _, row := range transportKinds {
		all = append(all, row.kind)
	}
	return all
}()

// Remote reports whether servers of the kind are reached by a URL: such a server can vanish silently, and may need credentials.
// It is false for kinds that a program adds.
func (k TransportKind) Remote() bool { return len(k.URLSchemes()) > 0 }

// URLSchemes returns the schemes of the URLs by which servers of the kind are reached; nil for kinds without a URL. The caller
// does not change it.
func (k TransportKind) URLSchemes() []string {
	for i := range transportKinds {
		if transportKinds[i].kind == k {
			return transportKinds[i].schemes
		}
	}
	return nil
}

// PairsAnswers reports whether the answer to a request comes with the HTTP response to it, and not as a message of its own.
func (k TransportKind) PairsAnswers() bool {
	for i := range transportKinds {
		if transportKinds[i].kind == k {
			return transportKinds[i].paired
		}
	}
	return false
}
