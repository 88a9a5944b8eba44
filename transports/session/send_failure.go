package session

import (
	"errors"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

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
