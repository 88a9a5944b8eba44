package outcome

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// TranslateError turns a transport's error into the module's error type; no other function does. If the body of an HTTP
// answer holds a JSON-RPC error, its words are added, because they explain more than the status. The outcome is left empty:
// only the caller knows what was sent.
func TranslateError(op string, err error) *messages.Error {
	var te *transports.Error
	switch {
	case errors.As(err, &te):
		e := &messages.Error{
			Op: op, Class: te.Class, Text: te.Text, Fix: te.Fix,
			Challenge: te.Challenge, RetryAfter: te.RetryAfter, Err: te,
		}
		// Without a class of its own it is a failure of the network.
		if e.Class == messages.ClassNone {
			e.Class = messages.ClassNetwork
		}
		if f, ok := jsonrpc.FindError(te.Body); ok {
			e.Code, e.Data, e.Reply = f.Code, f.Data, f.Raw
			// Some transports put the words into the text already.
			if !strings.Contains(e.Text, f.Message) {
				e.Text += ": " + f.Message
			}
		}
		return e
	case err == nil:
		return &messages.Error{Op: op, Class: messages.ClassNetwork, Text: "the connection ended, and nothing says why"}
	}
	return &messages.Error{
		Op: op, Class: messages.ClassOf(err), Text: messages.Line(err.Error(), jsonrpc.MaxText), Err: err,
	}
}

// OfSend returns the outcome of a request whose Send failed: how far the message got (d) and what the server said about it
// (err) decide. A doubt gives OutcomeUnknown.
func OfSend(d transports.Delivery, err error) messages.Outcome {
	if d == transports.NotWritten {
		return messages.OutcomeNotSent
	}
	var te *transports.Error
	if !errors.As(err, &te) {
		return messages.OutcomeUnknown
	}
	switch te.Class {
	case messages.ClassSession, messages.ClassUnauthorized, messages.ClassForbidden:
		switch {
		case d == transports.MaybeWritten || te.Status == 0:
			// The server accepted the request: it refused another message, or our wish to read the rest of the answer.
			return messages.OutcomeUnknown
		case te.Class == messages.ClassSession:
			// The server does not know the session, and does not run a request of an unknown session.
			return messages.OutcomeNotSent
		}
		return messages.OutcomeRejected
	}
	// A JSON-RPC error in the body is the server's own refusal, with any status. 408 says that the server did not wait
	// for the whole request, which is not a refusal.
	if _, ok := jsonrpc.FindError(te.Body); ok {
		return messages.OutcomeRejected
	}
	if te.Status/100 == 4 && te.Status != http.StatusRequestTimeout {
		return messages.OutcomeRejected
	}
	return messages.OutcomeUnknown
}

// ContextError returns the error for a ctx that ended before an event, which before names. The caller sets the outcome.
func ContextError(ctx context.Context, before string) *messages.Error {
	if DeadlinePassed(ctx) {
		return &messages.Error{Class: messages.ClassTimeout, Text: "the deadline passed " + before, Err: calltimeout.CauseOf(ctx)}
	}
	return &messages.Error{Class: messages.ClassCanceled, Text: "the caller gave up " + before, Err: calltimeout.CauseOf(ctx)}
}

// DeadlinePassed reports whether ctx ended because of time: its own deadline, or one of a [calltimeout.Context].
func DeadlinePassed(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// WithoutForeignBody returns err without its body if that body is the answer to another request: an error in it says nothing
// about the request id.
func WithoutForeignBody(id int64, err error) error {
	var te *transports.Error
	if !errors.As(err, &te) {
		return err
	}
	i := rawjson.SkipSpace(te.Body, 0)
	if i >= len(te.Body) || te.Body[i] != '{' {
		return err
	}
	if e, end := jsonrpc.ScanEnvelope(te.Body, i, 0); end < 0 || e.ID == 0 || e.ID == id {
		return err
	}
	// The error may be shared with other requests, so a copy is changed.
	own := *te
	own.Body = nil
	return &own
}
