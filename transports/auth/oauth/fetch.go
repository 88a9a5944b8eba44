package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
)

const (
	// fetchTime bounds one exchange with an authorization server, fetchSize its body in bytes, and fetchHops the redirects of a
	// metadata document. Requests that carry secrets follow no redirects.
	fetchTime = 15 * time.Second
	fetchSize = 1 << 20
	fetchHops = 3
)

// newClient returns a client that follows no redirects.
func (w *guardedTransport) newClient() *http.Client {
	return &http.Client{
		Transport: w, Timeout: fetchTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetchMetadata gets a metadata document into doc. found is false if the answer was 4xx or an HTML page: there is no document.
// The error is a *transports.Error.
func (w *guardedTransport) fetchMetadata(ctx context.Context, address, what string, doc any) (found bool, err error) {
	fail := func(class messages.Class, text string, cause error) (bool, error) {
		return false, &transports.Error{Class: class, Err: cause,
			Text: fmt.Sprintf("%s of %s %s", what, hostLabel(address), text)}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail(messages.ClassProtocol, "is not a usable URL", nil)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mcpvisor")
	// The address and those of redirects are checked in RoundTrip.
	client := w.newClient()
	// A redirect must not lead out of TLS; guardedTransport checks each address itself.
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch from := via[len(via)-1].URL; {
		case len(via) > fetchHops:
			return refusalError("redirects too often")
		case from.Scheme == "https" && next.URL.Scheme != "https":
			return refusalError("redirects from https to http")
		}
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, w.fetchError(what, address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code >= 500:
		return false, unavailableError(what+" of "+hostLabel(address), resp)
	// The document is missing, which the specification allows: the caller tries the next address.
	case code >= 400:
		return false, nil
	case code != http.StatusOK:
		return fail(messages.ClassProtocol, "is not there ("+resp.Status[:3]+")", nil)
	}
	// One byte more than the limit shows that the document is too long.
	body, err := io.ReadAll(io.LimitReader(resp.Body, fetchSize+1))
	if err != nil {
		return false, w.fetchError(what, address, err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case len(body) > fetchSize:
		return fail(messages.ClassProtocol, "is larger than 1 MiB", nil)
	case kind == "text/html": // sites answer every address with their page
		return false, nil
	case rawjson.Unmarshal(body, doc) != nil: // a doubled name is an error, too
		return fail(messages.ClassProtocol, "is not the JSON it should be", nil)
	}
	return true, nil
}

// fetchError translates an error of net/http without a whole answer.
func (w *guardedTransport) fetchError(what, address string, err error) *transports.Error {
	var no refusalError
	if errors.As(err, &no) {
		return &transports.Error{Class: messages.ClassDenied, Text: fmt.Sprintf("%s of %s %s", what, hostLabel(address), no)}
	}
	var at *url.Error
	if errors.As(err, &at) { // the URL in it may hold a secret
		err = at.Err // the URL around it is not for people
	}
	e := &transports.Error{Class: messages.ClassNetwork, Err: err,
		Text: fmt.Sprintf("%s of %s cannot be had", what, hostLabel(address))}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		e.Text = fmt.Sprintf("%s of %s does not come", what, hostLabel(address))
	}
	return e
}

// maxRetryAfter is the longest wait that an authorization server may ask for, because without a token every request fails.
const maxRetryAfter = 10 * time.Minute

// unavailableError is the error for an answer that says nothing about this client: 429, 5xx, or a page of a proxy.
func unavailableError(who string, resp *http.Response) *transports.Error {
	e := &transports.Error{Class: messages.ClassNetwork, Status: resp.StatusCode,
		Text: fmt.Sprintf("%s cannot be had now (%d)", who, resp.StatusCode)}
	e.RetryAfter = min(httpclient.RetryAfter(resp.Header, time.Now()), maxRetryAfter)
	if resp.StatusCode == http.StatusTooManyRequests || e.RetryAfter > 0 {
		e.Class = messages.ClassThrottled
	}
	return e
}

// hostLabel returns a URL's host and port for people. Path and query may hold secrets and are left out.
func hostLabel(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "an unusable URL"
	}
	return messages.Line(u.Host, 100)
}
