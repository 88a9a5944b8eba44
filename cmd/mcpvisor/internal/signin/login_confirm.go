package signin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// askConfirmation asks before credentials go to a host that a server has named. Only a typed "yes" agrees: consent has no
// default, and the end of the input is a no. An error means that the sign-in was cancelled.
func (c *signInDialog) askConfirmation(ctx context.Context, q oauth.Confirmation) (bool, error) {
	fmt.Fprint(c.options.Err, confirmationText(q))
	if c.options.Prompter.HasTerminal() {
		c.options.Prompter.Lines.DropTyped() // what was typed before cannot be meant as an answer
	}
	fmt.Fprint(c.options.Err, "Type yes to go on: ")
	answer, err := c.options.Prompter.Lines.ReadLine(ctx)
	switch {
	case errors.Is(err, ask.ErrEndOfInput):
		fmt.Fprintln(c.options.Err)
		return false, nil
	case err != nil:
		return false, err
	}
	return strings.EqualFold(strings.TrimSpace(answer), "yes"), nil
}

// confirmationText returns what the person decides about. Hosts stand whole and on lines of their own, so that no text around
// them can hide their end. q.Page is set if one host shows the page and another gets the answer.
func confirmationText(q oauth.Confirmation) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	whole := func(s string) string { return messages.Line(s, 0) }
	server := messages.Line(q.Server, 60)
	// The page and the token endpoint have different hosts: the code would be sent to the second.
	if q.Page != "" {
		line("\nYou sign in to %s at one host, and another one gets the answer, with which it can act as you:", server)
		line("  page:        %s", hostOf(q.Page))
		line("  answer goes: %s", hostOf(q.TokenURL))
		line("  named by:    %s", whole(q.Issuer))
		line("Nothing shows that the two belong together. Go on only if you know that they do.")
		return b.String()
	}
	line("\nThe server %s names the authorization server that is to get what your configuration holds:", server)
	line("  sent:                 %s", messages.Line(q.What, 200))
	line("  authorization server: %s   (not verified)", whole(q.Issuer))
	line("  sent to:              %s", hostOf(q.TokenURL))
	line("Go on only if that is who gave it to you. Your yes is remembered; mcpvisor logout --forget %s forgets it.", server)
	return b.String()
}

// hostOf returns the host of an address in the metadata of an authorization server.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "an unusable address"
	}
	return messages.Line(u.Host, 0)
}
