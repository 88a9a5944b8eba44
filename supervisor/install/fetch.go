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
	"github.com/mcpvisor/mcpvisor/transports"
)

const (
	// attempts bounds how often one thing is asked for, attemptTime each time, and answerSize what comes.
	attempts    = 3
	attemptTime = 15 * time.Second
	answerSize  = 4 << 20
	// firstDelay is before the second attempt; it doubles. Each delay is drawn from it to twice it.
	firstDelay = 500 * time.Millisecond
	// patience is the longest Retry-After that is waited for: a person sits before the command.
	patience = 30 * time.Second
	hops     = 3
)

// errNotFound is the cause of an error about what the registry does not have.
var errNotFound = fmt.Errorf("%w: not found", plan.ErrName)

func found(err error) bool { return !errors.Is(err, errNotFound) }

// get asks the registry, again if that may help.
func (r *Registry) get(ctx context.Context, op string, u *url.URL) ([]byte, error) {
	delay := firstDelay
	for attempt := 1; ; attempt++ {
		body, wait, err := r.once(ctx, op, u)
		var e *messages.Error
		if err == nil || !errors.As(err, &e) || wait < 0 || wait > patience || attempt == attempts {
			return body, err
		}
		if wait == 0 {
			wait = delay + rand.N(delay)
			delay *= 2
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// never is how long to wait before another attempt that cannot help.
const never = -1

// once is one attempt. wait says when another one may help: never, at a time of our own (0), or after what the registry
// asked for.
func (r *Registry) once(ctx context.Context, op string, u *url.URL) (body []byte, wait time.Duration, err error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, never, invalid("the address of the registry cannot be used", "")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", r.o.Agent)
	if r.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.o.Token)
	}
	resp, err := r.client().Do(req)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		body, err = io.ReadAll(io.LimitReader(resp.Body, answerSize+1))
	}
	switch {
	case whole.Err() != nil:
		return nil, never, &messages.Error{Op: op, Class: messages.ClassCanceled, Text: "the registry " + r.Host() +
			" was asked, and the answer was not waited for", Err: context.Cause(whole)}
	case err != nil:
		return nil, whenBroken(err), r.broken(op, err)
	case resp.StatusCode != http.StatusOK:
		wait, err := r.refused(op, resp, body)
		return nil, wait, err
	case len(body) > answerSize:
		return nil, never, r.strange(op, "its answer is larger than 4 MiB")
	}
	return body, never, nil
}

// client follows redirects within the registry's origin, and to nobody else: what comes decides what runs.
func (r *Registry) client() *http.Client {
	return &http.Client{Transport: r.rt, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > hops:
			return refusal("redirects too often")
		case next.URL.Scheme != r.base.Scheme || next.URL.Host != r.base.Host:
			return refusal("sends us on to " + messages.Line(next.URL.Host, 100) + ", another origin")
		}
		return nil
	}}
}

// refusal is why we did not go where we were sent.
type refusal string

func (r refusal) Error() string { return string(r) }

func whenBroken(err error) time.Duration {
	var no refusal
	if errors.As(err, &no) {
		return never
	}
	return 0
}

// broken translates what net/http says when there was no whole answer.
func (r *Registry) broken(op string, err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // the URL around it is not for people
	}
	e := &messages.Error{Op: op, Class: messages.ClassNetwork, Text: "the registry " + r.Host() + " cannot be reached: " + cause(err),
		Fix: "look at the network, or name another registry with --registry", Err: err}
	var no refusal
	var timeout net.Error
	switch {
	case errors.As(err, &no):
		e.Class, e.Text, e.Fix = messages.ClassDenied, "the registry "+r.Host()+" "+string(no), "name that one with --registry, "+
			"if it is the right one"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Class, e.Text = messages.ClassTimeout, "the registry "+r.Host()+" does not answer"
	}
	return e
}

// cause is the innermost sentence of a network error.
func cause(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "its name cannot be resolved"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return messages.Line(err.Error(), 120)
}

// refused translates an answer that is not 200, and says when another attempt may help.
func (r *Registry) refused(op string, resp *http.Response, body []byte) (wait time.Duration, err error) {
	code := resp.StatusCode
	e := &messages.Error{Op: op, Class: messages.ClassNetwork, RetryAfter: transports.RetryAfter(resp.Header, time.Now())}
	who := "the registry " + r.Host()
	detail := ""
	if d := said(body); d != "" {
		detail = ": " + d
	}
	switch {
	case code == http.StatusNotFound:
		e.Class, e.Err = messages.ClassInvalid, errNotFound
		e.Text = who + " has no such server or version"
		e.Fix = "mcpvisor search finds servers by a part of their names"
		return never, e
	case code == http.StatusUnauthorized:
		e.Class, e.Text, e.Fix = messages.ClassUnauthorized, who+" wants credentials", "set MCPVISOR_REGISTRY_TOKEN"
		return never, e
	case code == http.StatusForbidden:
		e.Class, e.Text = messages.ClassForbidden, who+" forbids it"+detail
		return never, e
	case code == http.StatusTooManyRequests:
		e.Class, e.Text = messages.ClassThrottled, who+" is asked too often"
	case code >= 500:
		e.Text = fmt.Sprintf("%s is in trouble (%d)%s", who, code, detail)
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		e.Class, e.Text = messages.ClassInvalid, who+" does not take the question"+detail
		return never, e
	default:
		e.Class, e.Text = messages.ClassProtocol, fmt.Sprintf("%s answers %d%s", who, code, detail)
		return never, e
	}
	e.Fix = "try again later"
	if e.RetryAfter > patience {
		e.Fix = "try again in " + e.RetryAfter.Round(time.Second).String()
	}
	return e.RetryAfter, e
}

// said is the registry's own sentence about an error: detail of a problem document, or error.
func said(body []byte) string {
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
