package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A refusal that another transport has received gets the class that HTTP gives it.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		status  int
		header  http.Header
		session bool
		class   messages.Class
	}{
		{http.StatusUnauthorized, http.Header{"Www-Authenticate": {`Bearer scope="x"`}}, false, messages.ClassUnauthorized},
		{http.StatusNotFound, nil, false, messages.ClassNetwork},
		{http.StatusNotFound, nil, true, messages.ClassSession},
		{http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}, false, messages.ClassThrottled},
		{http.StatusBadGateway, nil, true, messages.ClassNetwork},
	} {
		e := RefusalError("x.example:443", &http.Response{StatusCode: c.status, Header: c.header}, []byte("no"), c.session)
		if e.Class != c.class || e.Status != c.status || string(e.Body) != "no" || !strings.HasPrefix(e.Text, "x.example:443 ") {
			t.Errorf("%d: %+v", c.status, e)
		}
		if (e.RetryAfter == 7*time.Second) != (c.status == http.StatusTooManyRequests) {
			t.Errorf("%d: Retry-After %v", c.status, e.RetryAfter)
		}
		if (e.Challenge != nil) != (c.status == http.StatusUnauthorized) {
			t.Errorf("%d: challenge %+v", c.status, e.Challenge)
		}
	}
}
