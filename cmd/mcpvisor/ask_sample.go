package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

const (
	// samplingTime is how long a sampling command may take. A model that thinks takes minutes, and the server's own call
	// waits meanwhile.
	samplingTime = 5 * time.Minute
	// samplingMost bounds what it may write, in bytes.
	samplingMost = 16 << 20
)

// sampler answers servers that ask for the model, by a program of the person's: the params of the request are its
// input, its output is the result. MCPVISOR_SERVER in its environment says who asks. It runs in a process group of its
// own, which is killed when it has ended, takes too long or writes too much, and when the request is taken back.
type sampler struct {
	desk    *desk
	command []string
	yes     bool

	mu      sync.Mutex
	allowed map[string]bool
	asking  map[string]chan struct{} // closed when the server's consent is decided
}

func (s *sampler) sample(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error) {
	if !s.allow(ctx, r) {
		return nil, &messages.Error{Op: "sample", Class: messages.ClassDenied, Server: r.Server,
			Text: "the person does not let it use the model"}
	}
	ctx, cancel := context.WithTimeout(ctx, samplingTime)
	defer cancel()
	// The person's own program sees the person's own environment.
	out, err := transports.Filter(ctx, transports.StdioConfig{
		Command: s.command[0], Args: s.command[1:], Env: append(os.Environ(), "MCPVISOR_SERVER="+r.Server), Guard: s.desk.guard,
	}, r.Params, samplingMost)
	result := json.RawMessage(bytes.TrimSpace(out))
	var object map[string]json.RawMessage
	if err == nil && (json.Unmarshal(result, &object) != nil || object == nil) {
		err = fmt.Errorf("what it wrote is no JSON object")
	}
	if err == nil {
		for _, key := range []string{"role", "content", "model"} {
			if object[key] == nil {
				err = fmt.Errorf("the result that it wrote has no %q", key)
				break
			}
		}
	}
	if err != nil {
		s.desk.say(r.Server, "the sampling command %s failed: %s", messages.Line(s.command[0], 80),
			messages.Line(err.Error(), 300))
		return nil, err
	}
	return result, nil
}

// allow asks the person once for each server.
//
// 2025-11-25, Sampling: "For trust & safety and security, there SHOULD always be a human in the loop with the ability to
// deny sampling requests."
func (s *sampler) allow(ctx context.Context, r messages.SampleRequest) bool {
	if s.yes {
		return true
	}
	for {
		s.mu.Lock()
		if yes, decided := s.allowed[r.Server]; decided {
			s.mu.Unlock()
			return yes
		}
		waiting := s.asking[r.Server]
		if waiting == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-waiting:
		case <-ctx.Done():
			return false
		}
	}
	if s.asking == nil {
		s.asking, s.allowed = map[string]chan struct{}{}, map[string]bool{}
	}
	decided := make(chan struct{})
	s.asking[r.Server] = decided
	s.mu.Unlock()
	yes := false
	err := s.desk.ask(ctx, r.Server, func(t *talk) error {
		t.print("\nThe server %q wants an answer of your model. It asks:\n", messages.Line(r.Server, 60))
		t.quote(messages.Line(modelRequest(r.Params), 600))
		t.print("It would be given to: %s\n", messages.Line(strings.Join(s.command, " "), 200))
		word, err := t.choose("Let this server ask as often as it likes, until mcpvisor ends? [y]es or [n]o?", "yes", "no")
		yes = word == "yes"
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.asking, r.Server); err == nil {
		s.allowed[r.Server] = yes
	}
	close(decided)
	return yes && err == nil
}

// modelRequest is the text of what a server asks the model.
func modelRequest(params json.RawMessage) string {
	var p struct {
		SystemPrompt string `json:"systemPrompt"`
		Messages     []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(params, &p) != nil {
		return string(params)
	}
	var parts []string
	if p.SystemPrompt != "" {
		parts = append(parts, "system: "+p.SystemPrompt)
	}
	for _, m := range p.Messages {
		var c struct{ Text string }
		text := string(m.Content)
		if json.Unmarshal(m.Content, &c) == nil && c.Text != "" {
			text = c.Text
		}
		parts = append(parts, m.Role+": "+text)
	}
	return strings.Join(parts, " · ")
}
