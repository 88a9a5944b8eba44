package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
)

const (
	// maxAttempts bounds the attempts of one request, attemptTime each attempt, and maxAnswerSize the answer in bytes.
	maxAttempts   = 3
	attemptTime   = 15 * time.Second
	maxAnswerSize = 4 << 20
	// firstDelay is the delay before the second attempt, and doubles. The actual delay is drawn between it and twice
	// it, so that many clients do not come back at once.
	firstDelay = 500 * time.Millisecond
	// maxRetryAfter is the longest Retry-After that the command waits for, because a person sits before it.
	maxRetryAfter = 30 * time.Second
	maxRedirects  = 3
)

// errNotFound is the cause of an error about a server or version that the registry does not have.
var errNotFound = fmt.Errorf("%w: not found", plan.ErrName)

// isFound reports whether err is no errNotFound; it is true for other errors, too.
func isFound(err error) bool { return !errors.Is(err, errNotFound) }

// getWithRetry requests u, up to maxAttempts times, and returns the error of the last attempt. op names the command in
// errors.
func (r *Registry) getWithRetry(ctx context.Context, op string, u *url.URL) ([]byte, error) {
	delay := firstDelay
	for attempt := 1; ; attempt++ {
		body, wait, err := r.getOnce(ctx, op, u)
		var e *messages.Error
		if err == nil || !errors.As(err, &e) || wait < 0 || wait > maxRetryAfter || attempt == maxAttempts {
			return body, err
		}
		// The registry named no time, so that the delay doubles with each attempt.
		if wait == 0 {
			wait = delay + rand.N(delay)
			delay *= 2
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		// The caller gets the error of the last attempt, which says more than the cancellation.
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// noRetry is the delay of an attempt after which another one cannot help.
const noRetry = -1

// getOnce makes one attempt. wait says when another one may help: noRetry for never, 0 for a delay of getWithRetry's
// choice, or the Retry-After of the registry.
func (r *Registry) getOnce(ctx context.Context, op string, u *url.URL) (body []byte, wait time.Duration, err error) {
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, noRetry, configError("the address of the registry cannot be used", "")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", r.o.Agent)
	if r.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.o.Token)
	}
	resp, err := r.httpClient().Do(req)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		// One byte more than the bound shows that the answer is too large.
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswerSize+1))
	}
	switch {
	// The caller gave up, which must not look like a timeout of the registry.
	case parent.Err() != nil:
		return nil, noRetry, &messages.Error{Op: op, Class: messages.ClassCanceled, Text: "the registry " + r.Host() +
			" was asked, and the answer was not waited for", Err: context.Cause(parent)}
	case err != nil:
		return nil, retryDelay(err), r.requestError(op, err)
	case resp.StatusCode != http.StatusOK:
		wait, err := r.statusError(op, resp, body)
		return nil, wait, err
	// Asking again would bring the same answer.
	case len(body) > maxAnswerSize:
		return nil, noRetry, r.protocolError(op, "its answer is larger than 4 MiB")
	}
	return body, noRetry, nil
}

// httpClient returns a client that follows redirects within the registry's origin only, because the answer decides
// which program runs.
func (r *Registry) httpClient() *http.Client {
	return &http.Client{Transport: r.rt, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return refusalError("redirects too often")
		case next.URL.Scheme != r.base.Scheme || next.URL.Host != r.base.Host:
			return refusalError("sends us on to " + messages.Line(next.URL.Host, 100) + ", another origin")
		}
		return nil
	}}
}

// refusalError is the reason why a redirect or an address was refused, as the end of a sentence about the host.
type refusalError string

func (r refusalError) Error() string { return string(r) }

// retryDelay returns the delay after an error of net/http: a refusal will be the same at the next attempt, other errors
// may pass.
func retryDelay(err error) time.Duration {
	var refused refusalError
	if errors.As(err, &refused) {
		return noRetry
	}
	return 0
}

// requestError translates the error of net/http when there was no whole answer.
func (r *Registry) requestError(op string, err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		// The URL around the error is left out.
		err = at.Err
	}
	e := &messages.Error{Op: op, Class: messages.ClassNetwork, Text: "the registry " + r.Host() + " cannot be reached: " + innermostText(err),
		Fix: "look at the network, or name another registry with --registry", Err: err}
	var refused refusalError
	var timeout net.Error
	switch {
	case errors.As(err, &refused):
		e.Class, e.Text, e.Fix = messages.ClassDenied, "the registry "+r.Host()+" "+string(refused), "name that one with --registry, "+
			"if it is the right one"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Class, e.Text = messages.ClassTimeout, "the registry "+r.Host()+" does not answer"
	}
	return e
}

// innermostText returns the innermost sentence of a network error, because the outer ones repeat addresses and
// operations.
func innermostText(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "its name cannot be resolved"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return messages.Line(err.Error(), 120)
}

// statusError translates an answer that is not 200, and returns the delay after which another attempt may help.
func (r *Registry) statusError(op string, resp *http.Response, body []byte) (wait time.Duration, err error) {
	code := resp.StatusCode
	e := &messages.Error{Op: op, Class: messages.ClassNetwork, RetryAfter: httpclient.RetryAfter(resp.Header, time.Now())}
	registry := "the registry " + r.Host()
	detail := ""
	if d := problemText(body); d != "" {
		detail = ": " + d
	}
	switch {
	// Find replaces the text by one that names the server.
	case code == http.StatusNotFound:
		e.Class, e.Err = messages.ClassInvalid, errNotFound
		e.Text = registry + " has no such server or version"
		e.Fix = "mcpvisor search finds servers by a part of their names"
		return noRetry, e
	case code == http.StatusUnauthorized:
		e.Class, e.Text, e.Fix = messages.ClassUnauthorized, registry+" wants credentials", "set MCPVISOR_REGISTRY_TOKEN"
		return noRetry, e
	case code == http.StatusForbidden:
		e.Class, e.Text = messages.ClassForbidden, registry+" forbids it"+detail
		return noRetry, e
	// This case and the next continue below the switch, because another attempt may help.
	case code == http.StatusTooManyRequests:
		e.Class, e.Text = messages.ClassThrottled, registry+" is asked too often"
	case code >= 500:
		e.Text = fmt.Sprintf("%s is in trouble (%d)%s", registry, code, detail)
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		e.Class, e.Text = messages.ClassInvalid, registry+" does not take the question"+detail
		return noRetry, e
	default:
		e.Class, e.Text = messages.ClassProtocol, fmt.Sprintf("%s answers %d%s", registry, code, detail)
		return noRetry, e
	}
	e.Fix = "try again later"
	// getWithRetry does not wait so long, and the person learns when to try again.
	if e.RetryAfter > maxRetryAfter {
		e.Fix = "try again in " + e.RetryAfter.Round(time.Second).String()
	}
	return e.RetryAfter, e
}

// problemText returns the registry's own sentence about an error, on one line and escaped: the detail of a problem
// document (RFC 9457), the member error, or the title.
func problemText(body []byte) string {
	var problem struct {
		Detail string `json:"detail"`
		Title  string `json:"title"`
		Error  string `json:"error"`
	}
	if rawjson.Unmarshal(body, &problem) != nil {
		return ""
	}
	for _, s := range []string{problem.Detail, problem.Error, problem.Title} {
		if s != "" {
			return messages.Line(s, 200)
		}
	}
	return ""
}
