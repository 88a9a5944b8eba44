package addresses

import "net/url"

// OriginOf returns the scheme, host and port of a URL as one text: URLs with the same origin load the same machine. It is empty
// for a text without a host.
func OriginOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return ""
	}
	// A websocket begins as an HTTP request to the same host, so both count as one origin.
	switch u.Scheme {
	case "ws":
		return "http://" + u.Host
	case "wss":
		return "https://" + u.Host
	}
	return u.Scheme + "://" + u.Host
}
