package origin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// NetworkError translates an error of net, crypto/tls or net/http when there was no response, or not all of it. The text consists
// of host and port and of this package's own words. The cause may repeat what the server or this client sent: a cause that holds
// a secret is replaced by its text without it. session is a session id to hide, or empty.
func (o *Origin) NetworkError(err error, session string) *transports.Error {
	var own *transports.Error
	if errors.As(err, &own) {
		return own
	}
	e := &transports.Error{Class: messages.ClassNetwork, Err: err}
	if text := err.Error(); string(o.RedactText([]byte(text), session)) != text {
		e.Err = errors.New(string(o.RedactText([]byte(text), session)))
	}
	var (
		dns       *net.DNSError
		op        *net.OpError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		timeout   net.Error
	)
	// The order counts: a shortage of this machine first, then causes with the clearest advice, then those that wrap others.
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Class = messages.ClassExhausted
		e.Text, e.Fix = "no file descriptors are left to connect to "+o.Label, "raise the limit (ulimit -n)"
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Text, e.Fix = "the host of "+o.Label+" does not exist", "check the URL, or the network's name server"
	case errors.As(err, &dns):
		e.Text = "the host of " + o.Label + " could not be looked up"
	// net/http gives this Op to the connection that it makes to a proxy: the server itself may be well.
	case errors.As(err, &op) && op.Op == "proxyconnect":
		e.Text, e.Fix = "the proxy could not be reached to connect to "+o.Label, "check HTTPS_PROXY and HTTP_PROXY"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Text, e.Fix = o.Label+" refused the connection", "is the server running, and is this its port?"
	// A plain answer where a TLS record should begin: another port, or a server without TLS.
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		e.Text, e.Fix = o.Label+" does not speak TLS", "try http:// instead of https://"
	case errors.As(err, &authority):
		e.Text = o.Label + " has a certificate that nobody known has signed"
		e.Fix = "name its authority in tls.caFile, or add it to the system's trusted certificates"
	case errors.As(err, &hostname):
		e.Text = o.Label + " has a certificate for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		e.Text = o.Label + " has a certificate that has expired or is not valid yet"
	case errors.As(err, &verify), errors.As(err, &invalid), errors.As(err, &alert):
		e.Text = "no agreement on TLS with " + o.Label
	// crypto/tls reports an alert that the server has sent with this Op.
	case errors.As(err, &op) && op.Op == "remote error":
		e.Text = o.Label + " refused our side of TLS: " + errs.ShortSentence(op.Err.Error())
		e.Fix = "if it asks for a certificate, give tls.certFile and tls.keyFile"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		e.Text = "there is no network route to " + o.Label
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Text = o.Label + " did not answer in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		e.Text = o.Label + " broke the connection"
	// net/http has no type for it.
	case strings.Contains(err.Error(), "malformed HTTP"):
		e.Text, e.Fix = o.Label+" does not speak HTTP", "is this its port?"
	case errors.As(err, &op) && op.Op == "dial":
		e.Text = "cannot connect to " + o.Label
	default:
		e.Text = "the exchange with " + o.Label + " failed"
	}
	return e
}

// errorBodyTime bounds the wait for the body of an error response, because the status alone decides; the body only explains.
const errorBodyTime = time.Second

// ReadErrorBody reads the start of an error's body. cancel ends the request, and with it a body that does not come.
func ReadErrorBody(body io.Reader, cancel func()) []byte {
	// The error of reading is dropped: what has come by then is the start of the body.
	t := time.AfterFunc(errorBodyTime, cancel)
	defer t.Stop()
	b, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	return b
}

// maxErrorBody is the number of bytes kept of an error's body if it is a JSON-RPC error, which may carry data.
const maxErrorBody = 64 << 10

// StatusError translates a response that is no success. session is the session id that the request carried, or empty; body is the
// start of the response's body, of which the error keeps KeptEndSize bytes, or all if it is a JSON-RPC error.
func (o *Origin) StatusError(resp *http.Response, body []byte, session string) *transports.Error {
	// A JSON-RPC error stays whole, because the session may decode its data; of a page the beginning says enough.
	size := len(body)
	if size > incoming.KeptEndSize {
		if _, ok := parseRPCError(body); !ok {
			size = incoming.KeptEndSize
		}
	}
	e := &transports.Error{
		Class: messages.ClassProtocol, Status: resp.StatusCode, Body: o.RedactStart(body, size, session),
		RetryAfter: httpclient.RetryAfter(resp.Header, time.Now()),
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized:
		e.Class, e.Text = messages.ClassUnauthorized, "asks for authorization"
		if resp.Request != nil && resp.Request.Context().Value(callersOwnKey{}) != nil {
			e.Text, e.Err = "does not accept the credentials of this caller", messages.ErrCallerRefused
		}
		e.Challenge = o.challengeOf(resp.Header, session)
	case code == http.StatusForbidden:
		e.Class, e.Text, e.Fix = messages.ClassForbidden, "forbids this", forbiddenFix(resp.Request)
		e.Challenge = o.challengeOf(resp.Header, session)
	// This comes before the session: the answer is about the method, whatever session the request carried.
	case code == http.StatusNotFound && isUnknownMethod(body):
		e.Class, e.Text = messages.ClassRejected, "does not know the method"
	case code == http.StatusNotFound && session != "",
		code == http.StatusBadRequest && session != "" && (saysStaleSession(body) || IsModern(e)):
		// The modern era has no sessions: a server that speaks it now has forgotten those of its legacy self.
		e.Class, e.Text = messages.ClassSession, "does not know the session any more"
	case code == http.StatusNotFound, code == http.StatusGone:
		e.Class, e.Text, e.Fix = messages.ClassNetwork, "has nothing at this address", "check the path of the URL"
	case code == http.StatusMethodNotAllowed:
		e.Text = "does not accept messages at this address"
		e.Fix = `check the URL; a server of the older HTTP+SSE kind needs the type "sse"`
	// A 503 with a time is a request to wait; without one it is a server that cannot answer, as every other 5xx.
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && e.RetryAfter > 0:
		e.Class, e.Text = messages.ClassThrottled, "asks to wait"
		if e.RetryAfter > 0 {
			e.Text = "asks to wait " + e.RetryAfter.Round(time.Second).String()
		}
	case code == http.StatusRequestEntityTooLarge:
		e.Text = "does not accept a message of this size"
	case code == http.StatusProxyAuthRequired:
		e.Class, e.Text = messages.ClassNetwork, "is behind a proxy that asks for a password"
	case code == http.StatusRequestTimeout, code >= 500:
		e.Class, e.Text = messages.ClassNetwork, "cannot answer now"
	// What is left are other 4xx and statuses that no server should give here.
	default:
		e.Text = "refused the message"
	}
	e.Text = fmt.Sprintf("%s %s (%d %s)", o.Label, e.Text, e.Status, http.StatusText(e.Status))
	if said := serverErrorText(resp.Header, e.Body); said != "" {
		e.Text += ": " + said
	}
	return e
}

// rpcError has the parts of a JSON-RPC error response that decide the class and the text.
type rpcError struct {
	// ID is that of the request, null if the server could not read one.
	ID    json.RawMessage `json:"id"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// parseRPCError reports false if body is not a JSON-RPC error.
func parseRPCError(body []byte) (rpcError, bool) {
	var f rpcError
	err := json.Unmarshal(body, &f)
	return f, err == nil && f.Error != nil
}

// isUnknownMethod reports whether a 404 is about the method, and not about the session or the address.
//
// 2026-07-28: "If the server does not implement the requested RPC method, it MUST respond with 404 Not Found and a
// JSON-RPC error with code -32601".
func isUnknownMethod(body []byte) bool {
	f, ok := parseRPCError(body)
	return ok && f.Error.Code == -32601
}

// IsModern reports whether only a server of the modern era gives such a refusal.
//
// 2026-07-28, Backward Compatibility: "If the body contains a recognized modern JSON-RPC error, the server speaks a
// modern version of MCP".
func IsModern(e *transports.Error) bool {
	f, ok := parseRPCError(e.Body)
	return ok && (f.Error.Code >= -32022 && f.Error.Code <= -32020 ||
		e.Status == http.StatusNotFound && isUnknownMethod(e.Body))
}

// staleSessionText matches how servers word a forgotten session where they should have answered 404.
var staleSessionText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)no valid session|(invalid|unknown|expired|stale)( or expired)? session|` +
		`session( id)?( was| is| has| does)?( not)?( been)? (found|exist|expired|terminated|closed|invalid|unknown|valid)`)
})

// saysStaleSession reports whether a 400 says that the session is gone. An error with the request's id and the code for bad
// parameters is about the request, whatever words it uses.
func saysStaleSession(body []byte) bool {
	text := string(body)
	if f, ok := parseRPCError(body); ok {
		if f.Error.Code == -32602 && len(f.ID) > 0 && string(f.ID) != "null" {
			return false
		}
		text = f.Error.Message
	}
	return staleSessionText().MatchString(text)
}
