package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// askConfirmation asks before something goes to a place that a server has named. Only a typed yes is one: consent has no
// default, and the end of the input is a no.
func (c *signInDialog) askConfirmation(ctx context.Context, q oauth.Confirmation) (bool, error) {
	fmt.Fprint(c.err, confirmationText(q))
	if c.prompter.hasTerminal() {
		c.prompter.lines.dropTyped() // what was typed before answers nothing that could be seen
	}
	fmt.Fprint(c.err, "Type yes to go on: ")
	answer, err := c.prompter.lines.readLine(ctx)
	switch {
	case errors.Is(err, errEndOfInput):
		fmt.Fprintln(c.err)
		return false, nil
	case err != nil:
		return false, err
	}
	return strings.EqualFold(strings.TrimSpace(answer), "yes"), nil
}

// confirmationText is what the person decides on, whole: hosts stand on lines of their own.
func confirmationText(q oauth.Confirmation) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	whole := func(s string) string { return messages.Line(s, 0) }
	server := messages.Line(q.Server, 60)
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

// hostOf is the host of an address that an authorization server's metadata has named.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "an unusable address"
	}
	return messages.Line(u.Host, 0)
}
