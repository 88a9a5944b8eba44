package load

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Read makes one read of a stream that says what is read. rev is the state of what the server has that it shows, 0 if it shows none.
func Read(ctx context.Context, m *supervisor.Manager, c Call) (rev int, err error) {
	server := c.Stream.Server
	one := "chaos://" + server + "/one"
	switch c.Stream.Read {
	case "resources":
		all, err := m.Resources(ctx, server)
		for i := range all {
			if rev = max(rev, ParseNumber(all[i].Name, "item-")); !isDefinition(all[i], all[i].Raw, server, scenario.ResourceOf(server, all[i].Name)) {
				return history.Foreign, err
			}
		}
		return rev, err
	case "templates":
		all, err := m.ResourceTemplates(ctx, server)
		for i := range all {
			state := scenario.StateOfTemplate(all[i].URITemplate)
			if rev = max(rev, state); !isDefinition(all[i], all[i].Raw, server, scenario.TemplateOf(server, state)) {
				return history.Foreign, err
			}
		}
		return rev, err
	case "resource":
		var res *supervisor.ResourceResult
		if c.isOdd() {
			res, err = m.ReadResource(ctx, one)
		} else {
			res, err = m.ReadServerResource(ctx, server, one)
		}
		if err == nil {
			rev = ParseState(res.Text(), server)
		}
	case "prompts":
		all, err := m.Prompts(ctx, server)
		for i := range all {
			if rev = max(rev, ParseNumber(all[i].Name, "greet-")); all[i].Qualified != (messages.Naming{}).Prompt(server, all[i].Name) || !isPrompt(all[i], server) {
				return history.Foreign, err
			}
		}
		return rev, err
	case "prompt":
		var res *supervisor.PromptResult
		who := map[string]string{"who": "all"}
		if c.isOdd() {
			res, err = m.GetPrompt(ctx, messages.Naming{}.Prompt(server, "greet"), who)
		} else {
			res, err = m.GetServerPrompt(ctx, server, "greet", who)
		}
		if err == nil {
			for _, said := range res.Messages() {
				rev = ParseState(said.Content.Text, server)
			}
		}
	case "complete":
		r := messages.CompleteRequest{Prompt: "greet", Argument: "who", Value: "a"}
		if c.isOdd() {
			r = messages.CompleteRequest{URITemplate: scenario.OfferURI(server, "{name}"), Argument: "name", Value: "\"b", Context: map[string]string{"to": "all"}}
		}
		got, err := m.Complete(ctx, server, r)
		if want := scenario.CompletionOf(r.Prompt+r.URITemplate, r.Argument, r.Value, r.Context["to"]); err == nil && !reflect.DeepEqual(got, want) {
			rev = history.Foreign
		}
		return rev, err
	case "subscribe":
		if c.isOdd() {
			err = m.SubscribeResource(ctx, server, one)
		} else if strings.HasSuffix(c.ID, "4") {
			// Some watch another resource besides, which is there on every second connection only and refused on the others.
			_ = m.SubscribeResource(ctx, server, "chaos://"+server+"/briefly")
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

// isDefinition reports whether a definition was read as its server has written it, member by member, and is kept as it was written.
func isDefinition(read any, raw []byte, server, written string) bool {
	own, err := json.Marshal(read)
	withServer := strings.Replace(written, "{", `{"server":`+strconv.Quote(server)+`,`, 1)
	return err == nil && history.HashContent(own) == history.HashContent([]byte(withServer)) && history.HashContent(raw) == history.HashContent([]byte(written))
}

// isPrompt is isDefinition for a prompt, whose qualified name is the manager's.
func isPrompt(p supervisor.Prompt, server string) bool {
	p.Qualified = ""
	return isDefinition(p, p.Raw, server, scenario.PromptOf(p.Name, p.Name))
}

// ParseState is the state that the first line of a text of a server tells.
func ParseState(text, server string) int {
	text, _, _ = strings.Cut(text, "\n")
	if rest, isState := strings.CutSuffix(text, " of "+server); isState {
		if n := ParseNumber(rest, "state "); n > 0 {
			return n
		}
	}
	return history.Foreign
}

// ParseNumber is the number behind a prefix, 0 if there is none.
func ParseNumber(text, prefix string) int {
	rest, _ := strings.CutPrefix(text, prefix)
	n, _ := strconv.Atoi(rest)
	return n
}

// EndsSubscription says that a call of a stream that subscribes ends a subscription.
func (c Call) EndsSubscription() bool { return !c.isOdd() }

// isOdd says that the call has an odd number.
func (c Call) isOdd() bool { return len(c.ID) > 0 && (c.ID[len(c.ID)-1]-'0')%2 == 1 }
