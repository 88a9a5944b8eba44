package httpclient

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		value, server string
		want          time.Duration
	}{
		{"", "", 0}, {"0", "", 0}, {"30", "", 30 * time.Second}, {" 7 ", "", 7 * time.Second},
		{"-5", "", 0}, {"soon", "", 0}, {"1.5", "", 0},
		{"999999999", "", maxRetryAfter}, {"99999999999999999999", "", 0},
		{date(90 * time.Second), "", 90 * time.Second}, {date(-time.Hour), "", 0},
		// The server's clock is an hour ahead of ours.
		{date(time.Hour + time.Minute), date(time.Hour), time.Minute},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		h.Set("Date", c.server)
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("Retry-After %q, Date %q: %v, want %v", c.value, c.server, got, c.want)
		}
	}
}
