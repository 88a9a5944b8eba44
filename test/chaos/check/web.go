package check

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// exchange is what a server answered to one HTTP request.
type exchange struct {
	status int
	header http.Header
	body   string
	tls    *tls.ConnectionState
}

// mostBody is how much of a body is read; streams are left after their head.
const mostBody = 256 << 10

// client is how requests are sent, with the TLS of the spec. nil means the transport's own.
func (s *subject) client() *http.Client {
	if s.spec.TLS == nil {
		return nil
	}
	cfg, _, err := transports.LoadTLS(*s.spec.TLS)
	if err != nil { // the first start says what is wrong with the files
		return nil
	}
	return transports.NewTLSClient(cfg)
}

// request sends one request with the headers of the spec; header are pairs that take the place of others, an empty value
// removes.
func (s *subject) request(ctx context.Context, method, body string, header ...string) (exchange, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Answer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.spec.URL, strings.NewReader(body))
	if err != nil {
		return exchange{}, err
	}
	for k, v := range s.spec.Headers {
		req.Header.Set(k, v)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			req.Header.Del(header[i])
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c := s.client(); c != nil {
		client.Transport = c.Transport
		defer c.CloseIdleConnections()
	}
	resp, err := client.Do(req)
	if err != nil {
		return exchange{}, err
	}
	defer resp.Body.Close()
	x := exchange{status: resp.StatusCode, header: resp.Header, tls: resp.TLS}
	b := make([]byte, 0, 4<<10)
	if method != http.MethodGet { // that is a stream without end
		b, _ = io.ReadAll(io.LimitReader(resp.Body, mostBody)) // the head says enough if the rest is cut off
	}
	x.body = string(b)
	return x, nil
}

func (x exchange) contentType() string {
	t, _, _ := strings.Cut(x.header.Get("Content-Type"), ";")
	return strings.TrimSpace(t)
}

// web tries what only servers over streamable HTTP have.
func (s *subject) web(ctx context.Context) {
	if s.spec.URL == "" {
		return
	}
	s.encryption(ctx)
	if s.kind != messages.HTTP {
		return
	}
	hello := initialize(s.version)
	headers := []string{}
	if s.era == messages.EraModern {
		version := session.DefaultModernVersions()[0]
		hello = string((&conversation{modern: version}).request(1, "server/discover", nil))
		headers = []string{"Mcp-Protocol-Version", version, "Mcp-Method", "server/discover"}
	}
	x, err := s.request(ctx, http.MethodPost, hello, headers...)
	if err != nil || x.status >= 400 {
		s.add("session", NotTried, "a plain request is not answered as the manager's are: it may be of the older HTTP+SSE kind", "")
		return
	}
	s.contentTypes(ctx, x, hello, headers)
	s.origin(ctx, hello, headers)
	version := s.version
	if s.era == messages.EraModern {
		// There are no sessions in this era. Most servers speak the older one too, for the clients that know no other.
		version = session.DefaultVersions()[0]
		if x, err = s.request(ctx, http.MethodPost, initialize(version)); err != nil || x.status != http.StatusOK {
			return
		}
	}
	s.sessions(ctx, x, version)
}

func initialize(version string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"mcpvisor-check","version":"1"}}}`
}

// contentTypes looks at what answers are called, and whether what is no JSON is taken for it.
func (s *subject) contentTypes(ctx context.Context, x exchange, hello string, headers []string) {
	if t := x.contentType(); t != "application/json" && t != "text/event-stream" {
		s.add("content-type", Fail, fmt.Sprintf("it answers a request with %q", messages.Line(t, 60)),
			"answer with application/json or text/event-stream")
		return
	}
	wrong, err := s.request(ctx, http.MethodPost, hello, append(headers, "Content-Type", "text/plain")...)
	switch {
	case err != nil:
		s.add("content-type", Warn, "it does not answer a request of type text/plain", "refuse it with HTTP 415")
	case wrong.status < 400:
		s.add("content-type", Warn, "it takes a request of type text/plain for a message",
			"refuse it with HTTP 415: any web page may send such a request to a server on this machine without being asked first")
		s.forget(ctx, wrong)
	default:
		s.add("content-type", Pass, fmt.Sprintf("it answers with %s, and refuses text/plain with HTTP %d", x.contentType(),
			wrong.status), "")
	}
}

// origin comes from a web page of somebody else.
//
// 2025-11-25, Streamable HTTP: "Servers MUST validate the Origin header on all incoming connections to prevent DNS
// rebinding attacks. If the Origin header is present and invalid, servers MUST respond with HTTP 403 Forbidden."
func (s *subject) origin(ctx context.Context, hello string, headers []string) {
	x, err := s.request(ctx, http.MethodPost, hello, append(headers, "Origin", "https://attacker.example")...)
	const fix = "refuse requests whose Origin header names a site that you do not know with HTTP 403"
	switch {
	case err != nil:
		s.add("origin", Warn, "it does not answer a request that comes from a foreign web page", fix)
	case x.status < 400 && s.local():
		s.add("origin", Fail, "it serves any web page that the person opens: a request with the Origin https://attacker.example "+
			"is answered", fix)
		s.forget(ctx, x)
	case x.status < 400:
		s.add("origin", Warn, "it answers a request with the Origin https://attacker.example; without credentials in cookies "+
			"that does little harm on a public host", fix)
		s.forget(ctx, x)
	default:
		s.add("origin", Pass, fmt.Sprintf("it refuses a foreign web page with HTTP %d", x.status), "")
	}
}

// local reports whether the server is on this machine.
func (s *subject) local() bool {
	u, err := url.Parse(s.spec.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

const sessionHeader = "Mcp-Session-Id"

// forget ends a session that was opened on the way.
func (s *subject) forget(ctx context.Context, x exchange) {
	if id := x.header.Get(sessionHeader); id != "" {
		_, _ = s.request(ctx, http.MethodDelete, "", sessionHeader, id) // the server ends it in its own time otherwise
	}
}

const listRequest = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`

// sessions tries unknown sessions, the stream, and the end of a session. x is the answer to an initialize of that version.
func (s *subject) sessions(ctx context.Context, x exchange, version string) {
	id := x.header.Get(sessionHeader)
	in := func(session string) []string {
		return []string{sessionHeader, session, "Mcp-Protocol-Version", version}
	}
	if id == "" {
		s.add("session", Pass, "it has no sessions, so that none can be lost", "")
		s.stream(ctx, []string{"Mcp-Protocol-Version", version})
		return
	}
	_, _ = s.request(ctx, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, in(id)...) // as a client does
	unknown, err := s.request(ctx, http.MethodPost, listRequest, in("00000000-0000-4000-8000-000000000000")...)
	const fix = "answer a request of a session that is not known with HTTP 404: that alone tells clients to begin a new one " +
		"after the server was restarted"
	switch {
	case err != nil:
		s.add("session", Fail, "it does not answer a request of a session that it does not know", fix)
	case unknown.status == http.StatusNotFound:
		s.add("session", Pass, "it answers a session that it does not know with HTTP 404", "")
	case unknown.status < 400:
		s.add("session", Fail, "it serves a session that it never opened", fix)
	default:
		s.add("session", Fail, fmt.Sprintf("it answers a session that it does not know with HTTP %d", unknown.status), fix)
	}
	s.stream(ctx, in(id))
	s.versionHeader(ctx, id, version)
	s.sessionEnd(ctx, id, in)
}

// stream opens the stream of the server's own messages.
func (s *subject) stream(ctx context.Context, header []string) {
	x, err := s.request(ctx, http.MethodGet, "", append(header, "Accept", "text/event-stream")...)
	const fix = "answer GET with text/event-stream at once, or with HTTP 405 if there is no such stream"
	switch {
	case err != nil:
		s.add("stream", Warn, "it does not answer GET: whoever opens its stream waits", fix)
	case x.status == http.StatusOK && x.contentType() == "text/event-stream":
		s.add("stream", Pass, "it opens a stream for its own messages", "")
	case x.status == http.StatusMethodNotAllowed:
		s.add("stream", Pass, "it has no stream for its own messages, and says so with HTTP 405", "")
	default:
		s.add("stream", Warn, fmt.Sprintf("it answers GET with HTTP %d and the type %q", x.status,
			messages.Line(x.contentType(), 60)), fix)
	}
}

// versionHeader sends a version of the protocol that does not exist.
//
// 2025-11-25: "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with
// 400 Bad Request."
func (s *subject) versionHeader(ctx context.Context, id, version string) {
	if version < "2025-06-18" {
		return
	}
	x, err := s.request(ctx, http.MethodPost, listRequest, sessionHeader, id, "Mcp-Protocol-Version", noVersion)
	switch {
	case err != nil:
		s.add("version-header", Warn, "it does not answer a request with a protocol version that does not exist", "answer with HTTP 400")
	case x.status == http.StatusBadRequest:
		s.add("version-header", Pass, "it refuses a protocol version that does not exist with HTTP 400", "")
	case x.status < 400:
		s.add("version-header", Warn, "it ignores a protocol version in the headers that does not exist", "answer with HTTP 400")
	default:
		s.add("version-header", Warn, fmt.Sprintf("it refuses a protocol version that does not exist with HTTP %d", x.status),
			"answer with HTTP 400")
	}
}

// sessionEnd ends the session, and looks whether it has ended.
func (s *subject) sessionEnd(ctx context.Context, id string, in func(string) []string) {
	x, err := s.request(ctx, http.MethodDelete, "", in(id)...)
	switch {
	case err != nil:
		s.add("session-end", Fail, "it does not answer DELETE: clients that end politely hang",
			"answer DELETE at once, with HTTP 405 if sessions cannot be ended")
		return
	case x.status == http.StatusMethodNotAllowed:
		s.add("session-end", Pass, "its sessions cannot be ended by clients, and it says so with HTTP 405", "")
		return
	case x.status >= 400:
		s.add("session-end", Warn, fmt.Sprintf("it answers DELETE with HTTP %d", x.status),
			"answer with a 2xx, or with HTTP 405 if sessions cannot be ended")
		return
	}
	after, err := s.request(ctx, http.MethodPost, listRequest, in(id)...)
	switch {
	case err == nil && after.status == http.StatusNotFound:
		s.add("session-end", Pass, "a session that was ended with DELETE is gone: HTTP 404", "")
	case err == nil && after.status < 400:
		s.add("session-end", Warn, "a session that was ended with DELETE is still served", "forget it")
	case err == nil:
		s.add("session-end", Warn, fmt.Sprintf("a session that was ended with DELETE is answered with HTTP %d", after.status),
			"answer with HTTP 404")
	default:
		s.add("session-end", Fail, "a request of a session that was ended is not answered", "answer with HTTP 404")
	}
}

// encryption looks at TLS.
func (s *subject) encryption(ctx context.Context) {
	u, err := url.Parse(s.spec.URL)
	if err != nil {
		return
	}
	if u.Scheme == "http" || u.Scheme == "ws" {
		if s.local() {
			s.add("tls", Pass, "it is on this machine, where plain HTTP reaches nobody else", "")
			return
		}
		s.add("tls", Warn, "it is reached over plain HTTP: everybody on the way reads and changes what is said", "use https")
		return
	}
	x, err := s.request(ctx, http.MethodGet, "")
	if err != nil || x.tls == nil || len(x.tls.PeerCertificates) == 0 {
		s.add("tls", NotTried, "its certificate could not be looked at", "")
		return
	}
	until := time.Until(x.tls.PeerCertificates[0].NotAfter)
	text := fmt.Sprintf("%s, and its certificate is valid for %d more days", tls.VersionName(x.tls.Version), int(until.Hours()/24))
	if until < 14*24*time.Hour {
		s.add("tls", Warn, text, "renew it: everybody's connection ends with it")
		return
	}
	s.add("tls", Pass, text, "")
}
