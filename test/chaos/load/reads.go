package load

import (
	"context"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// Read makes one read of a stream that says what is read. rev is the state of what the server has that it shows, 0 if it shows none.
func Read(ctx context.Context, m *supervisor.Manager, c Call) (rev int, err error) {
	server := c.Stream.Server
	one := "chaos://" + server + "/one"
	switch c.Stream.Read {
	case "resources":
		all, err := m.Resources(ctx, server)
		for _, r := range all {
			rev = max(rev, Numbered(r.Name, "item-"))
		}
		return rev, err
	case "templates":
		_, err = m.ResourceTemplates(ctx, server)
	case "resource":
		var res *supervisor.ResourceResult
		if c.odd() {
			res, err = m.ReadResource(ctx, one)
		} else {
			res, err = m.ReadServerResource(ctx, server, one)
		}
		if err == nil {
			rev = Stated(res.Text(), server)
		}
	case "prompts":
		all, err := m.Prompts(ctx, server)
		for _, p := range all {
			rev = max(rev, Numbered(p.Name, "greet-"))
		}
		return rev, err
	case "prompt":
		var res *supervisor.PromptResult
		who := map[string]string{"who": "all"}
		if c.odd() {
			res, err = m.GetPrompt(ctx, messages.Naming{}.Prompt(server, "greet"), who)
		} else {
			res, err = m.GetServerPrompt(ctx, server, "greet", who)
		}
		if err == nil {
			for _, said := range res.Messages() {
				rev = Stated(said.Content.Text, server)
			}
		}
	case "complete":
		_, err = m.Complete(ctx, server, messages.CompleteRequest{Prompt: "greet", Argument: "who", Value: "a"})
	case "subscribe":
		if c.odd() {
			err = m.SubscribeResource(ctx, server, one)
		} else {
			err = m.UnsubscribeResource(ctx, server, one)
		}
	case "tasks":
		var tasks []supervisor.TaskStatus
		if tasks, err = m.Tasks(ctx, server); err == nil && len(tasks) > 0 {
			_, err = m.Task(ctx, server, tasks[len(tasks)-1].ID)
		}
	case "ping":
		_, err = m.Ping(ctx, server)
	}
	return rev, err
}

// Stated is the state that the first line of a text of a server tells.
func Stated(text, server string) int {
	text, _, _ = strings.Cut(text, "\n")
	if rest, is := strings.CutSuffix(text, " of "+server); is {
		if n := Numbered(rest, "state "); n > 0 {
			return n
		}
	}
	return history.Foreign
}

// Numbered is the number behind a prefix, 0 if there is none.
func Numbered(text, prefix string) int {
	rest, _ := strings.CutPrefix(text, prefix)
	n, _ := strconv.Atoi(rest)
	return n
}

// Ends says that a call of a stream that subscribes ends a subscription.
func (c Call) Ends() bool { return !c.odd() }

// odd says that the call has an odd number.
func (c Call) odd() bool { return len(c.ID) > 0 && (c.ID[len(c.ID)-1]-'0')%2 == 1 }
