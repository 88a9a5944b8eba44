package session

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
)

// An answer is the end of one request, as the reader or the session hands it to the caller.
type answer struct {
	kind    answerKind
	isError bool
	// toolRan is true for an answerUnusable that the server gave after it had run the tool; the error text says so.
	toolRan bool
	// raw is the result, or the error object. It shares the memory of the message's body.
	raw []byte
	// detail is the member resultType of a result, without quotes: empty for "complete" and if there is none. For an
	// answerUnusable or answerNoMemory it is the rest of a sentence about the fault. They share a field because every stack
	// frame of a call holds an answer: with those of net/http, the frames of one call fit into 8 KiB of stack, or take 16.
	detail string
}

const (
	// answerResult: raw is the result, a JSON object.
	answerResult answerKind = iota
	// answerRPCError: raw is the member error.
	answerRPCError
	// answerUnusable: the server answered with something that cannot be used.
	answerUnusable
	// answerNoMemory: the share of the memory had no room for the answer; detail says so.
	answerNoMemory
	// answerSessionEnded: the session ended before there was an answer.
	answerSessionEnded
	// answerTimedOut: a deadline of the caller's CallTimeout passed before there was an answer.
	answerTimedOut
)

// answerKind tells how a request ended, or what its answer holds.
type answerKind uint8

// asError returns the error of an answer that is not a result, with its outcome; nil for a result.
func (a answer) asError(method string) *messages.Error {
	switch a.kind {
	case answerRPCError:
		f := readRPCError(a.raw)
		return &messages.Error{
			Outcome: messages.OutcomeRejected, Class: messages.ClassRejected, Code: f.code, Data: f.data,
			Text: fmt.Sprintf("the server rejected %s: %s", method, f),
		}
	case answerUnusable, answerNoMemory:
		text := "the server's answer to " + method + " " + a.detail
		if a.toolRan && method == "tools/call" {
			text = "the tool ran, but its answer " + a.detail
		}
		if a.kind == answerNoMemory {
			return &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassExhausted, Text: text,
				Fix: "raise the memory budget, or ask for less", Err: messages.ErrMemory}
		}
		return &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassProtocol, Text: text}
	case answerResult, answerSessionEnded, answerTimedOut: // the last two never get here: sendAndWait turns them into errors
	}
	return nil
}

// asNotSent marks e: no byte of the request left this process.
func asNotSent(e *messages.Error) *messages.Error {
	e.Outcome = messages.OutcomeNotSent
	return e
}

// callerLeftError returns the not-sent error of a request whose caller left before it was sent, nil if the caller still
// waits.
func callerLeftError(ctx context.Context) *messages.Error {
	if ctx.Err() == nil {
		return nil
	}
	return asNotSent(contextError(ctx, "before the request was sent"))
}
