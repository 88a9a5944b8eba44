package outcome

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// An Answer is the end of one request, as the reader or the session hands it to the caller.
type Answer struct {
	Kind    Kind
	IsError bool
	// ToolRan is true for an AnswerUnusable that the server gave after it had run the tool; the error text says so.
	ToolRan bool
	// Raw is the result, or the error object. It shares the memory of the message's body.
	Raw []byte
	// Detail is the member resultType of a result, without quotes: empty for "complete" and if there is none. For an
	// AnswerUnusable or AnswerNoMemory it is the rest of a sentence about the fault. They share a field because every stack
	// frame of a call holds an answer: with those of net/http, the frames of one call fit into 8 KiB of stack, or take 16.
	Detail string
}

const (
	// AnswerResult: Raw is the result, a JSON object.
	AnswerResult Kind = iota
	// AnswerRPCError: Raw is the member error.
	AnswerRPCError
	// AnswerUnusable: the server answered with something that cannot be used.
	AnswerUnusable
	// AnswerNoMemory: the share of the memory had no room for the answer; Detail says so.
	AnswerNoMemory
	// AnswerSessionEnded: the session ended before there was an answer.
	AnswerSessionEnded
	// AnswerTimedOut: a deadline of the caller's call timeout passed before there was an answer.
	AnswerTimedOut
)

// Kind tells how a request ended, or what its answer holds.
type Kind uint8

// AsError returns the error of an answer that is not a result, with its outcome; nil for a result.
func (a Answer) AsError(method string) *messages.Error {
	switch a.Kind {
	case AnswerRPCError:
		f := jsonrpc.ReadError(a.Raw)
		return &messages.Error{
			Outcome: messages.OutcomeRejected, Class: messages.ClassRejected, Code: f.Code, Data: f.Data, Reply: f.Raw,
			Text: fmt.Sprintf("the server rejected %s: %s", method, f),
		}
	case AnswerUnusable, AnswerNoMemory:
		text := "the server's answer to " + method + " " + a.Detail
		if a.ToolRan && method == "tools/call" {
			text = "the tool ran, but its answer " + a.Detail
		}
		if a.Kind == AnswerNoMemory {
			return &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassExhausted, Text: text,
				Fix: "raise the memory budget, or ask for less", Err: messages.ErrMemory}
		}
		return &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassProtocol, Text: text}
	case AnswerResult, AnswerSessionEnded, AnswerTimedOut: // the last two never get here: the session turns them into errors
	}
	return nil
}

// MarkNotSent marks e: no byte of the request left this process.
func MarkNotSent(e *messages.Error) *messages.Error {
	e.Outcome = messages.OutcomeNotSent
	return e
}

// CallerLeftError returns the not-sent error of a request whose caller left before it was sent, nil if the caller still
// waits.
func CallerLeftError(ctx context.Context) *messages.Error {
	if ctx.Err() == nil {
		return nil
	}
	return MarkNotSent(ContextError(ctx, "before the request was sent"))
}
