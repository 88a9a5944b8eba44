package check

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// exchange is the answer to one HTTP request.
type exchange struct {
	status int
	header http.Header
	body   string
	tls    *tls.ConnectionState
}

// maxBody is the number of bytes of a body that are read. Of a stream only the head is read.
const maxBody = 256 << 10

// httpClient returns a client with the TLS settings of the spec, nil if the transport's own will do.
func (s *serverCheck) httpClient() *http.Client {
	if s.spec.TLS == nil {
		return nil
	}
	cfg, _, err := httpclient.LoadTLS(*s.spec.TLS)
	// The first start has reported what is wrong with the files.
	if err != nil {
		return nil
	}
	return httpclient.NewTLS(cfg)
}

// sendHTTP sends one request with the headers of the spec, without following redirects. header holds pairs that replace
// headers; an empty value removes one.
func (s *serverCheck) sendHTTP(ctx context.Context, method, body string, header ...string) (exchange, error) {
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
		if header[i] == "Host" { // net/http takes it from here alone
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	// The check wants the server's own answer, and the spec's headers must not follow a redirect to another host.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c := s.httpClient(); c != nil {
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
	// The answer to GET is a stream without end.
	if method != http.MethodGet {
		// The head says enough if the body breaks off.
		b, _ = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	}
	x.body = string(b)
	return x, nil
}

// contentType returns the media type without parameters.
func (x exchange) contentType() string {
	t, _, _ := strings.Cut(x.header.Get("Content-Type"), ";")
	return strings.TrimSpace(t)
}

// checkHTTP checks what only servers over HTTP have. The TLS check covers SSE and WebSocket too.
func (s *serverCheck) checkHTTP(ctx context.Context) {
	if s.spec.URL == "" {
		return
	}
	s.checkTLS(ctx)
	if s.kind != messages.HTTP {
		return
	}
	// The handshake is written by hand here, because the transport would mend what the check wants to see.
	hello := initializeBody(s.version)
	headers := []string{}
	if s.era == messages.EraModern {
		version := session.DefaultModernVersions()[0]
		hello = string((&rawClient{modern: version}).requestBody(1, "server/discover", nil))
		headers = []string{"Mcp-Protocol-Version", version, "Mcp-Method", "server/discover"}
	}
	x, err := s.sendHTTP(ctx, http.MethodPost, hello, headers...)
	if err != nil || x.status >= 400 {
		s.addFinding("session", NotTried, "a plain request is not answered as the manager's are: it may be of the older HTTP+SSE kind", "")
		return
	}
	// The session of x stays open through the next checks; checkSessions ends it at last.
	s.checkContentTypes(ctx, x, hello, headers)
	s.checkOrigin(ctx, hello, headers)
	version := s.version
	if s.era == messages.EraModern {
		// There are no sessions in this era. Most servers speak the older one too, for the clients that know no other.
		version = session.DefaultVersions()[0]
		if x, err = s.sendHTTP(ctx, http.MethodPost, initializeBody(version)); err != nil || x.status != http.StatusOK {
			return
		}
	}
	s.checkSessions(ctx, x, version)
}

// initializeBody encodes an initialize request.
func initializeBody(version string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"mcpvisor-check","version":"1"}}}`
}

// checkContentTypes checks the content type of answers, and whether the server takes text/plain for a message. Browsers send
// text/plain to other sites without asking those first.
func (s *serverCheck) checkContentTypes(ctx context.Context, x exchange, hello string, headers []string) {
	if t := x.contentType(); t != "application/json" && t != "text/event-stream" {
		s.addFinding("content-type", Fail, fmt.Sprintf("it answers a request with %q", messages.Line(t, 60)),
			"answer with application/json or text/event-stream")
		return
	}
	plainText, err := s.sendHTTP(ctx, http.MethodPost, hello, append(headers, "Content-Type", "text/plain")...)
	switch {
	case err != nil:
		s.addFinding("content-type", Warn, "it does not answer a request of type text/plain", "refuse it with HTTP 415")
	case plainText.status < 400:
		s.addFinding("content-type", Warn, "it takes a request of type text/plain for a message",
			"refuse it with HTTP 415: any web page may send such a request to a server on this machine without being asked first")
		s.endSession(ctx, plainText)
	default:
		s.addFinding("content-type", Pass, fmt.Sprintf("it answers with %s, and refuses text/plain with HTTP %d", x.contentType(),
			plainText.status), "")
	}
}

// checkOrigin sends a request as a foreign web page would. Of a server on this machine that answers it, it finds out whether a page
// can really send one: a browser asks such a server first before it sends JSON there, and it does not ask for text/plain, nor where
// the page's own host name leads to this machine (DNS rebinding).
func (s *serverCheck) checkOrigin(ctx context.Context, hello string, headers []string) {
	served := func(more ...string) (bool, error) {
		x, err := s.sendHTTP(ctx, http.MethodPost, hello, slices.Concat(headers, more)...)
		if err == nil && x.status < 400 {
			s.endSession(ctx, x)
		}
		return err == nil && x.status < 400, err
	}
	const fix = "refuse requests whose Origin header names a site that you do not know with HTTP 403"
	foreign, err := served("Origin", "https://attacker.example")
	switch {
	case err != nil:
		s.addFinding("origin", Warn, "it does not answer a request that comes from a foreign web page", fix)
		return
	case !foreign:
		s.addFinding("origin", Pass, "it refuses a request that comes from a foreign web page", "")
		return
	case !s.isLocal():
		s.addFinding("origin", Warn, "it answers a request with the Origin https://attacker.example; without credentials in cookies "+
			"that does little harm on a public host", fix)
		return
	}
	// An error here is no answer to the page either.
	rebound, _ := served("Origin", "http://attacker.example", "Host", "attacker.example")
	unasked, _ := served("Origin", "https://attacker.example", "Content-Type", "text/plain")
	switch {
	case rebound:
		s.addFinding("origin", Fail, "it serves any web page that the person opens: a request with the Host and the Origin "+
			"attacker.example is answered, which a page sends whose host name leads to this machine (DNS rebinding)", fix)
	case unasked:
		s.addFinding("origin", Fail, "it serves any web page that the person opens: a request with the Origin https://attacker.example "+
			"and the type text/plain, which a browser sends without asking first, is answered", fix)
	default:
		s.addFinding("origin", Warn, "it answers a request with the Origin https://attacker.example, which the specification has refused "+
			"with HTTP 403; a browser sends none that it would answer, because it refuses a foreign Host and the type text/plain", fix)
	}
}

// isLocal reports whether the server is on this machine, where web pages could reach it.
func (s *serverCheck) isLocal() bool {
	u, err := url.Parse(s.spec.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

const sessionHeader = "Mcp-Session-Id"

// endSession ends a session that a check has opened in passing.
func (s *serverCheck) endSession(ctx context.Context, x exchange) {
	if id := x.header.Get(sessionHeader); id != "" {
		// Without an answer the session ends by the server's own timeout.
		_, _ = s.sendHTTP(ctx, http.MethodDelete, "", sessionHeader, id)
	}
}

// listRequest is a plain request to try a session with.
const listRequest = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`

// checkSessions tries an unknown session, the stream, and the end of a session. x is the answer to an initialize of that
// version.
func (s *serverCheck) checkSessions(ctx context.Context, x exchange, version string) {
	id := x.header.Get(sessionHeader)
	// in returns the headers of a request within a session. The version header is required from 2025-06-18 on, and ignored
	// before.
	in := func(session string) []string {
		return []string{sessionHeader, session, "Mcp-Protocol-Version", version}
	}
	if id == "" {
		s.addFinding("session", Pass, "it has no sessions, so that none can be lost", "")
		s.checkStream(ctx, []string{"Mcp-Protocol-Version", version})
		return
	}
	// A client sends this after initialize, and some servers refuse requests before it.
	_, _ = s.sendHTTP(ctx, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, in(id)...)
	unknown, err := s.sendHTTP(ctx, http.MethodPost, listRequest, in("00000000-0000-4000-8000-000000000000")...)
	const fix = "answer a request of a session that is not known with HTTP 404: that alone tells clients to begin a new one " +
		"after the server was restarted"
	switch {
	case err != nil:
		s.addFinding("session", Fail, "it does not answer a request of a session that it does not know", fix)
	case unknown.status == http.StatusNotFound:
		s.addFinding("session", Pass, "it answers a session that it does not know with HTTP 404", "")
	// A server behind a load balancer without shared sessions serves anything; its clients never learn that their state is
	// gone.
	case unknown.status < 400:
		s.addFinding("session", Fail, "it serves a session that it never opened", fix)
	default:
		s.addFinding("session", Fail, fmt.Sprintf("it answers a session that it does not know with HTTP %d", unknown.status), fix)
	}
	s.checkStream(ctx, in(id))
	s.checkVersionHeader(ctx, id, version)
	s.checkSessionEnd(ctx, id, in)
}

// checkStream opens the GET stream for messages that belong to no request.
func (s *serverCheck) checkStream(ctx context.Context, header []string) {
	x, err := s.sendHTTP(ctx, http.MethodGet, "", append(header, "Accept", "text/event-stream")...)
	const fix = "answer GET with text/event-stream at once, or with HTTP 405 if there is no such stream"
	switch {
	case err != nil:
		s.addFinding("stream", Warn, "it does not answer GET: whoever opens its stream waits", fix)
	case x.status == http.StatusOK && x.contentType() == "text/event-stream":
		s.addFinding("stream", Pass, "it opens a stream for its own messages", "")
	case x.status == http.StatusMethodNotAllowed:
		s.addFinding("stream", Pass, "it has no stream for its own messages, and says so with HTTP 405", "")
	default:
		s.addFinding("stream", Warn, fmt.Sprintf("it answers GET with HTTP %d and the type %q", x.status,
			messages.Line(x.contentType(), 60)), fix)
	}
}

// checkVersionHeader sends a protocol version that does not exist. The header exists since 2025-06-18.
func (s *serverCheck) checkVersionHeader(ctx context.Context, id, version string) {
	if version < "2025-06-18" {
		return
	}
	x, err := s.sendHTTP(ctx, http.MethodPost, listRequest, sessionHeader, id, "Mcp-Protocol-Version", noVersion)
	switch {
	case err != nil:
		s.addFinding("version-header", Warn, "it does not answer a request with a protocol version that does not exist", "answer with HTTP 400")
	case x.status == http.StatusBadRequest:
		s.addFinding("version-header", Pass, "it refuses a protocol version that does not exist with HTTP 400", "")
	case x.status < 400:
		s.addFinding("version-header", Warn, "it ignores a protocol version in the headers that does not exist", "answer with HTTP 400")
	default:
		s.addFinding("version-header", Warn, fmt.Sprintf("it refuses a protocol version that does not exist with HTTP %d", x.status),
			"answer with HTTP 400")
	}
}

// checkSessionEnd ends the session with DELETE, and checks whether the server still serves it.
func (s *serverCheck) checkSessionEnd(ctx context.Context, id string, in func(string) []string) {
	x, err := s.sendHTTP(ctx, http.MethodDelete, "", in(id)...)
	switch {
	case err != nil:
		s.addFinding("session-end", Fail, "it does not answer DELETE: clients that end politely hang",
			"answer DELETE at once, with HTTP 405 if sessions cannot be ended")
		return
	case x.status == http.StatusMethodNotAllowed:
		s.addFinding("session-end", Pass, "its sessions cannot be ended by clients, and it says so with HTTP 405", "")
		return
	case x.status >= 400:
		s.addFinding("session-end", Warn, fmt.Sprintf("it answers DELETE with HTTP %d", x.status),
			"answer with a 2xx, or with HTTP 405 if sessions cannot be ended")
		return
	}
	after, err := s.sendHTTP(ctx, http.MethodPost, listRequest, in(id)...)
	switch {
	case err == nil && after.status == http.StatusNotFound:
		s.addFinding("session-end", Pass, "a session that was ended with DELETE is gone: HTTP 404", "")
	// The id may leak into logs; a session that lives on can be used by a reader of them.
	case err == nil && after.status < 400:
		s.addFinding("session-end", Warn, "a session that was ended with DELETE is still served", "forget it")
	case err == nil:
		s.addFinding("session-end", Warn, fmt.Sprintf("a session that was ended with DELETE is answered with HTTP %d", after.status),
			"answer with HTTP 404")
	default:
		s.addFinding("session-end", Fail, "a request of a session that was ended is not answered", "answer with HTTP 404")
	}
}

// checkTLS checks whether the connection is encrypted, and how long the certificate is valid.
func (s *serverCheck) checkTLS(ctx context.Context) {
	u, err := url.Parse(s.spec.URL)
	if err != nil {
		return
	}
	if u.Scheme == "http" || u.Scheme == "ws" {
		if s.isLocal() {
			s.addFinding("tls", Pass, "it is on this machine, where plain HTTP reaches nobody else", "")
			return
		}
		s.addFinding("tls", Warn, "it is reached over plain HTTP: everybody on the way reads and changes what is said", "use https")
		return
	}
	x, err := s.sendHTTP(ctx, http.MethodGet, "")
	if err != nil || x.tls == nil || len(x.tls.PeerCertificates) == 0 {
		s.addFinding("tls", NotTried, "its certificate could not be looked at", "")
		return
	}
	validFor := time.Until(x.tls.PeerCertificates[0].NotAfter)
	text := fmt.Sprintf("%s, and its certificate is valid for %d more days", tls.VersionName(x.tls.Version), int(validFor.Hours()/24))
	if validFor < 14*24*time.Hour {
		s.addFinding("tls", Warn, text, "renew it: everybody's connection ends with it")
		return
	}
	s.addFinding("tls", Pass, text, "")
}
