package httpclient

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter keeps a server's mistake from stopping a client for years.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads the header Retry-After: seconds, or a date. It compares a date with the server's own clock if the response has
// one, else with now, because clocks differ. It is 0 if there is no header or none that can be read, and at most a day.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	var d time.Duration
	if s, err := strconv.ParseUint(v, 10, 32); err == nil {
		d = time.Duration(s) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		if server, err := http.ParseTime(h.Get("Date")); err == nil {
			now = server
		}
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}
