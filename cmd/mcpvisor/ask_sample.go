package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
)

const (
	// samplingTime is how long a sampling command may take. A model that thinks takes minutes, and the server's own call
	// waits meanwhile.
	samplingTime = 5 * time.Minute
	// maxSamplingOutput bounds what it may write, in bytes.
	maxSamplingOutput = 16 << 20
)

// sampler answers servers that ask for the model, by a program of the person's: the params of the request are its
// input, its output is the result. MCPVISOR_SERVER in its environment says who asks. It runs in a process group of its
// own, which is killed when it has ended, takes too long or writes too much, and when the request is taken back.
// At most two of them run for one server at a time, and four in all; the next requests wait.
type sampler struct {
	prompter *prompter
	command  []string
	yes      bool

	consents samplingConsents
	slots    samplingSlots
}

func (s *sampler) answerSampling(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error) {
	if !s.yes {
		if err := s.requestConsent(ctx, r); err != nil {
			return nil, err
		}
	}
	end, err := s.slots.takeSlot(ctx, r.Server)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, samplingTime)
	defer cancel()
	// The person's own program sees the person's own environment.
	out, err := transports.Filter(ctx, transports.StdioConfig{
		Command: s.command[0], Args: s.command[1:], Env: append(os.Environ(), "MCPVISOR_SERVER="+r.Server), Guard: s.prompter.guard,
	}, r.Params, maxSamplingOutput)
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
		s.prompter.printRemark(r.Server, "the sampling command %s failed: %s", messages.Line(s.command[0], 80),
			messages.Line(err.Error(), 300))
		return nil, err
	}
	return result, nil
}

// modelRequest is the text of what a server asks the model. Names count as they are written; the request was refused before
// if two of them are equal or alike but for case. What cannot be read so is shown as it is.
func modelRequest(params json.RawMessage) string {
	var p struct {
		SystemPrompt string `json:"systemPrompt"`
		Messages     []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if rawjson.UnmarshalStrict(params, &p) != nil || len(p.Messages) == 0 {
		return string(params)
	}
	var parts []string
	if p.SystemPrompt != "" {
		parts = append(parts, "system: "+p.SystemPrompt)
	}
	for _, m := range p.Messages {
		var c struct {
			Text string `json:"text"`
		}
		text := string(m.Content)
		if rawjson.UnmarshalStrict(m.Content, &c) == nil && c.Text != "" {
			text = c.Text
		}
		parts = append(parts, m.Role+": "+text)
	}
	return strings.Join(parts, " · ")
}
