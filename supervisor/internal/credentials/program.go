package credentials

import (
	"context"
	"maps"
	"net/http"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// authorize asks an Authorizer for the credentials of a request. The program's own gets headers of its own to fill, because it may not
// have returned when the request has ended.
func (c *Credential) authorize(ctx context.Context, a transports.Authorizer, h http.Header) error {
	if !c.IsFromProgram() || c.owner.AskProgram == nil {
		return a.Authorize(ctx, h)
	}
	filled := http.Header{}
	if err := c.owner.AskProgram(ctx, c.name, func() error { return a.Authorize(ctx, filled) }); err != nil {
		return err
	}
	maps.Copy(h, filled)
	return nil
}

// reportRefusal tells an Authorizer of a refusal, the program's own in the same way as authorize.
func (c *Credential) reportRefusal(ctx context.Context, a transports.Authorizer, status int, challenge *messages.Challenge, used http.Header) (
	retry bool, err error) {
	if !c.IsFromProgram() || c.owner.AskProgram == nil {
		return a.Refused(ctx, status, challenge, used)
	}
	given := used.Clone()
	var mayRetry bool
	err = c.owner.AskProgram(ctx, c.name, func() (err error) {
		mayRetry, err = a.Refused(ctx, status, challenge, given)
		return err
	})
	if err != nil {
		return false, err // mayRetry may still be written
	}
	return mayRetry, nil
}
