package serve

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// checkSource returns why a request is refused before it is read, empty if it is not. A page of another origin can make a browser
// send requests to the loopback, under a name that its own server resolves to it: Host shows the name, and Origin the page.
//
// 2025-11-25: "Servers MUST validate the Origin header on all incoming connections to prevent DNS rebinding attacks".
func checkSource(r *http.Request, expect func(string) bool) string {
	if !isExpected(hostOf(r.Host), expect) {
		return "the Host of the request is not one of this endpoint"
	}
	switch origins := r.Header["Origin"]; len(origins) {
	case 0:
		return ""
	case 1:
		u, err := url.Parse(origins[0])
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil || !isExpected(hostOf(u.Host), expect) {
			return "the Origin of the request is not allowed"
		}
		return ""
	default:
		return "the request has several Origins"
	}
}

// hostOf returns a host without its port, in lower case.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return strings.ToLower(host)
}

// isExpected reports whether a host is one of the loopback, or is expected beside them.
func isExpected(host string, expect func(string) bool) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || expect != nil && expect(host)
}
