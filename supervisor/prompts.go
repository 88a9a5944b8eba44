package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// PromptResult is a prompt that a server filled with the given arguments.
type PromptResult struct {
	// Server is the id of the server that answered, Name the prompt's name there.
	Server, Name string
	// Description is the server's own text, untrusted.
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

// Messages returns the messages of the prompt, in order; nil if the result cannot be decoded, which Raw still shows.
func (p *PromptResult) Messages() []PromptMessage {
	if p == nil {
		return nil
	}
	// The shape is read leniently: a message with missing members is shown as far as it goes.
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
// one that says that there is no such prompt is ErrUnknownPrompt. After a lost connection the request is sent once more, under
// the conditions of ReadServerResource.
func (m *Manager) GetServerPrompt(
	ctx context.Context, server, name string, args map[string]string, opts ...CallOption,
) (*PromptResult, error) {
	return m.getPrompt(ctx, server, name, args, opts)
}

// getPrompt sends prompts/get to a server, or, if that is empty, to the one of a qualified name.
func (m *Manager) getPrompt(ctx context.Context, server, name string, args map[string]string, opts []CallOption) (*PromptResult, error) {
	r := &actors.Request{Method: actors.GetPrompt, Server: server, Name: name, PromptArgs: args, Repeatable: true,
		Send: func(ctx context.Context, s *session.Session, r *actors.Request) (err error) {
			r.Answer.Raw, err = s.GetPrompt(ctx, r.Name, r.PromptArgs, r.Options)
			return err
		}}
	if err := m.handleWith(ctx, r, opts); err != nil {
		var e *Error
		if server == "" && r.Server != "" && errors.As(err, &e) && errors.Is(e, messages.ErrUnknownPrompt) && e.Nearest != "" {
			// The server was found by the qualified name, so the nearest name is one that serves for the next call.
			e.Nearest = m.cfg.Naming.Prompt(r.Server, e.Nearest)
			e.Fix = fmt.Sprintf("did you mean %q?", messages.Line(e.Nearest, 200))
		}
		return nil, err
	}
	res := &PromptResult{Server: r.Server, Name: r.Name, Raw: r.Result}
	// A description of another type is visible in Raw.
	res.Description, _ = rawjson.Text(rawjson.Member(trimSpace(res.Raw), "description"))
	return res, nil
}

// GetPrompt fills a prompt by its qualified name, mcp__{server}__{prompt}. A lazy server is connected first; if the name has a hash and no
// connected server lists it, each lazy server whose name fits is. The error is ErrUnknownPrompt if no server is
// known to have it; a server that is not lazy and not connected may have it all the same.
func (m *Manager) GetPrompt(
	ctx context.Context, qualified string, args map[string]string, opts ...CallOption,
) (*PromptResult, error) {
	return m.getPrompt(ctx, "", qualified, args, opts)
}

// findPrompt returns the server and the own name of a prompt, or qualified and the error that no server is known to have it.
func (m *Manager) findPrompt(ctx context.Context, qualified string) (server, name string, err error) {
	server, name, ok := m.resolvePrompt(ctx, qualified)
	if !ok {
		return "", qualified, &Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
			Text: fmt.Sprintf("no prompt is known as %q", messages.Line(qualified, 200)),
			Fix:  "list the prompts to see the names, or see whether its server is connected", Err: messages.ErrUnknownPrompt}
	}
	return server, name, nil
}

// resolvePrompt returns the server and the own name of a prompt. A plain qualified name contains both; one with a hash is looked up
// in the index, then in the lists of those connected servers whose names fit it, and then in those of lazy servers that must be
// connected for it, as a plain name has them connected.
func (m *Manager) resolvePrompt(ctx context.Context, qualified string) (server, name string, ok bool) {
	if server, name, ok = m.cfg.Naming.Split(qualified); ok {
		return server, name, m.isConfigured(server)
	}
	if server, name, ok = m.index.FindPrompt(qualified); ok && m.isConfigured(server) {
		return server, name, true
	}
	var connected, lazy []string
	for _, name := range m.Servers() {
		cell := m.shared.CellOf(name)
		if cell == nil || !m.cfg.Naming.MayBeOf(qualified, name) || isHidden(ctx, name) || !m.MayRead(name) {
			continue
		}
		switch v := cell.View(); {
		case v.State.Phase == messages.Connected:
			connected = append(connected, name)
		case v.Spec.Connect == messages.Lazy:
			lazy = append(lazy, name)
		}
	}
	// Most of them are asked in vain, which keeps none from its rest.
	if server, name, ok = m.searchPrompt(context.WithValue(ctx, awakeOnly{}, true), qualified, connected); ok {
		return server, name, true
	}
	return m.searchPrompt(ctx, qualified, lazy)
}

// searchPrompt looks for a prompt in the lists of servers. It ends as soon as one has it, so that a slow server delays it only if no other
// has the prompt.
func (m *Manager) searchPrompt(ctx context.Context, qualified string, servers []string) (server, name string, ok bool) {
	if len(servers) == 0 {
		return "", "", false
	}
	// found ends the requests to the other servers as soon as one has listed the prompt.
	search, found := context.WithCancel(ctx)
	defer found()
	// The parts and their errors are of no use here: what was listed stands in the index.
	m.promptParts(search, servers, func(p *messages.Prompt) {
		if p.Qualified == qualified {
			found()
		}
	})
	server, name, ok = m.index.FindPrompt(qualified)
	return server, name, ok && m.isConfigured(server)
}

// Complete asks a server for proposals for the value of an argument of a prompt or of a resource template, named as the
// server names them. The error is an *Error with an Outcome.
func (m *Manager) Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error) {
	var c messages.Completion
	err := m.readServer(ctx, "completion/complete", server, func(ctx context.Context, s *session.Session) (err error) {
		c, err = s.Complete(ctx, r)
		return err
	})
	return c, err
}
