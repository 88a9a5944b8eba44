package messages

import (
	"slices"
	"strings"
)

// TransportKind names how a server is reached.
type TransportKind string

const (
	// Stdio is a child process that speaks over its standard input and output.
	Stdio TransportKind = "stdio"
	// HTTP is streamable HTTP. A spec with a URL and no kind is HTTP with a fall-back to SSE (FallbackSSE).
	HTTP TransportKind = "http"
	// SSE is the HTTP+SSE transport of 2024-11-05.
	SSE TransportKind = "sse"
	// WebSocket is one JSON-RPC message per text frame, subprotocol "mcp".
	WebSocket TransportKind = "websocket"
	// SDK is a server that lives in the same Go program, registered with the manager under Spec.Name.
	SDK TransportKind = "sdk"
	// ClaudeAIProxy is streamable HTTP to a connector proxy, with the connector's id.
	ClaudeAIProxy TransportKind = "claudeai-proxy"
)

// transportKinds is the table of the kinds. A new kind is a constant, its row here and one in transports/kinds, which makes the
// transport; everything else asks the row: the words of configuration files and flags too.
var transportKinds = []struct {
	kind TransportKind
	// words are the other names that configuration files and people have for the kind.
	words []string
	// schemes are those of the URLs by which a server of the kind is reached; none for a server of this machine.
	schemes []string
	// paired says that the answer to a request comes with the HTTP response to it.
	paired bool
}{
	{kind: Stdio, words: []string{"local"}},
	{kind: HTTP, words: []string{"streamable-http", "streamableHttp", "streamable_http"}, schemes: httpSchemes, paired: true},
	{kind: SSE, schemes: httpSchemes},
	// People write the address of a WebSocket with http, too.
	{kind: WebSocket, words: []string{"ws"}, schemes: []string{"ws", "wss", "http", "https"}},
	{kind: SDK},
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

// TransportKindOf returns the kind that a word means: the kind's own name, or another one that files use for it.
func TransportKindOf(word string) (kind TransportKind, known bool) {
	for _, row := range transportKinds {
		if word == string(row.kind) || slices.Contains(row.words, word) {
			return row.kind, true
		}
	}
	return "", false
}

// Words returns the words that mean the kind, its own name first.
func (k TransportKind) Words() []string {
	words := []string{string(k)}
	for _, row := range transportKinds {
		if row.kind == k {
			words = append(words, row.words...)
		}
	}
	return words
}

// TransportKindOfURL returns the kind that the scheme of a URL alone means; empty for a URL that several kinds could have.
func TransportKindOfURL(url string) TransportKind {
	scheme, _, _ := strings.Cut(strings.ToLower(url), "://")
	if slices.Contains(httpSchemes, scheme) {
		return ""
	}
	for _, row := range transportKinds {
		if slices.Contains(row.schemes, scheme) {
			return row.kind
		}
	}
	return ""
}

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
