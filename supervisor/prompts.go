package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// PromptResult is a prompt whose gaps are filled.
type PromptResult struct {
	// Server is who was asked, Name the prompt's name there.
	Server, Name string
	// Description is the server's own, untrusted.
	Description string
	// Raw is the server's result object, byte for byte. It is untrusted.
	Raw json.RawMessage
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	// Role is "user" or "assistant".
	Role    string  `json:"role"`
	Content Content `json:"content"`
	// Raw is the whole message as sent.
	Raw json.RawMessage `json:"-"`
}

// Messages is the messages of the prompt, in order; nil if the result cannot be decoded, which its Raw still shows.
func (p *PromptResult) Messages() []PromptMessage {
	list, err := partsOf(p.Raw, "messages")
	if err != nil {
		return nil
	}
	out := make([]PromptMessage, len(list))
	for i, raw := range list {
		out[i].Role, _ = rawjson.Text(rawjson.Member(raw, "role"))
		out[i].Content = contentOf(rawjson.Member(raw, "content"))
		out[i].Raw = raw
	}
	return out
}

// GetServerPrompt fills a prompt of a server. A lazy server is connected first. The error is an *Error with an Outcome;
// one that says that there is no such prompt is ErrUnknownPrompt. It is repeated as ReadServerResource is.
func (m *Manager) GetServerPrompt(
	ctx context.Context, server, name string, args map[string]string, opts ...CallOption,
) (*PromptResult, error) {
	return m.audit.auditPrompt(ctx, server, name, args, func(t *actors.Trace) (*PromptResult, error) {
		return m.getPrompt(ctx, server, name, args, t, opts)
	})
}

func (m *Manager) getPrompt(
	ctx context.Context, server, name string, args map[string]string, t *actors.Trace, opts []CallOption,
) (*PromptResult, error) {
	res := &PromptResult{Server: server, Name: name}
	err := m.readTraced(ctx, server, t, func(ctx context.Context, s *session.Session) (err error) {
		res.Raw, err = s.GetPrompt(ctx, name, args, m.sessionOptions(opts))
		return err
	})
	if err != nil {
		return nil, err
	}
	res.Description, _ = rawjson.Text(rawjson.Member(trimSpace(res.Raw), "description")) // Raw shows one that is no text
	return res, nil
}

// GetPrompt fills a prompt by its qualified name, mcp__{server}__{prompt}. The error is ErrUnknownPrompt if no server is
// known to have it.
func (m *Manager) GetPrompt(
	ctx context.Context, qualified string, args map[string]string, opts ...CallOption,
) (*PromptResult, error) {
	return m.audit.auditPrompt(ctx, "", qualified, args, func(t *actors.Trace) (*PromptResult, error) {
		server, name, ok := m.resolvePrompt(ctx, qualified)
		if !ok {
			if m.closing.Load() {
				return nil, closedError("read")
			}
			return nil, &Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
				Text: fmt.Sprintf("no prompt is known as %q", messages.Line(qualified, 200)),
				Fix:  "list the prompts to see the names, or see whether its server is connected", Err: messages.ErrUnknownPrompt}
		}
		t.Found(server, name)
		return m.getPrompt(ctx, server, name, args, t, opts)
	})
}

// resolvePrompt resolves a qualified name: a plain one says whose it is, one with a hash only a list does. The servers whose name it
// cannot be are not asked, and whoever has it is not waited for longer than it takes to say so.
func (m *Manager) resolvePrompt(ctx context.Context, qualified string) (server, name string, ok bool) {
	if server, name, ok = m.cfg.Naming.Split(qualified); ok {
		return server, name, m.isConfigured(server)
	}
	if server, name, ok = m.index.findPrompt(qualified); ok && m.isConfigured(server) {
		return server, name, true
	}
	may := slices.DeleteFunc(m.readableServers(), func(server string) bool { return !m.cfg.Naming.MayBeOf(qualified, server) })
	if len(may) == 0 {
		return "", "", false
	}
	search, found := context.WithCancel(ctx)
	defer found()
	m.promptParts(search, may, func(p *messages.Prompt) { // what a server's failure leaves out is not known
		if p.Qualified == qualified {
			found()
		}
	})
	server, name, ok = m.index.findPrompt(qualified)
	return server, name, ok && m.isConfigured(server)
}

// Complete asks a server for proposals for the value of an argument of a prompt or of a resource template, by the server's
// own names. The error is an *Error with an Outcome.
func (m *Manager) Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error) {
	var c messages.Completion
	err := m.readServer(ctx, server, true, func(ctx context.Context, s *session.Session) (err error) {
		c, err = s.Complete(ctx, r)
		return err
	})
	return c, err
}
