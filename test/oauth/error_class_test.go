package oauth_test

import (
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// facadeError makes a facade's error of a transport's.
func facadeError(err error) error {
	var e *transports.Error
	if errors.As(err, &e) {
		return &messages.Error{Class: e.Class, Text: e.Text, Fix: e.Fix}
	}
	return err
}
