package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// sendMessage gives a message to the connection. It runs in the goroutine of the caller of a request, who must not end with a transport of
// the program's own: one that panics, ends its goroutine or returns an error that cannot be read ends the session, and the message may
// have been written. The goroutine of a caller that Send has ended (runtime.Goexit) cannot be kept.
func (s *Session) sendMessage(ctx context.Context, m transports.Message) (d transports.Delivery, err error) {
	hasReturned := false
	defer func() {
		if !hasReturned {
			d, err = transports.MaybeWritten, s.failSend(recover())
		}
	}()
	if d, err = s.conn.Send(ctx, m); err != nil {
		err = readableError(err)
	}
	hasReturned = true
	return d, err
}

// postToConn is sendMessage for a connection that takes a message without waiting.
func (s *Session) postToConn(m transports.Message) (posting transports.PendingPost, d transports.Delivery, err error) {
	hasReturned := false
	defer func() {
		if !hasReturned {
			posting, d, err = nil, transports.MaybeWritten, s.failSend(recover())
		}
	}()
	if posting, d, err = s.poster.Post(m); err != nil {
		err = readableError(err)
	}
	hasReturned = true
	return posting, d, err
}

// failSend ends the session of a transport whose Send has not returned, and returns the error of what was sent. panicked is nil if Send has
// ended its goroutine.
func (s *Session) failSend(panicked any) error {
	text := "the transport's Send ended its goroutine (runtime.Goexit)"
	if panicked != nil {
		text = "the transport's Send panicked: " + messages.Line(fmt.Sprint(panicked), 200)
	}
	s.failSession(&messages.Error{Class: messages.ClassPanic, Text: text, Fix: "make it return an error instead"})
	return &transports.Error{Class: messages.ClassPanic, Text: text, Fix: "make it return an error instead"}
}

// readableError returns the error of a transport. One whose method panics, such as a nil *transports.Error that was returned as an error,
// would panic again wherever it is read: another error stands in its place.
func readableError(own error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the transport returned an error that cannot be read")
		}
	}()
	if te := (*transports.Error)(nil); errors.As(own, &te) && te == nil {
		return errors.New("the transport returned a nil *transports.Error as its error")
	}
	_ = own.Error()
	return own
}
