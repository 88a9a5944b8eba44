package ask

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
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

const (
	// samplingTime bounds one run of the sampling command. A model that thinks takes minutes, and the call that caused the
	// request waits meanwhile.
	samplingTime = 5 * time.Minute
	// maxSamplingOutput bounds the output of the sampling command, in bytes; one that writes more is killed.
	maxSamplingOutput = 16 << 20
)

// sampler answers requests for the model (sampling/createMessage) with a program of the person's: its input is the params of
// the request, its output the result. MCPVISOR_SERVER in its environment names the server. The program runs in a process group
// of its own, which is killed when the program ends, takes too long or writes too much, and when the server takes the request
// back. At most samplesPerServer programs run for one server and samplesAtOnce in all; further requests wait.
type sampler struct {
	prompter *Prompter
	// command is the program and its arguments; it is not empty.
	command []string
	// yes is the value of --yes: no consent is asked for.
	yes bool

	consents samplingConsents
	slots    samplingSlots
}

// answerSampling answers one request; the manager calls it concurrently. The result is passed on as the program wrote it, after
// a check that it is an object with the members that the specification requires.
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
	// The program is the person's own, and gets the person's whole environment.
	out, err := stdio.Filter(ctx, stdio.Config{
		Command: s.command[0], Args: s.command[1:], Env: append(os.Environ(), "MCPVISOR_SERVER="+r.Server), Guard: s.prompter.Guard,
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

// modelRequest returns the text of what a server asks the model, for the question to the person. It reads strictly, because a
// reader that accepts two spellings of a key could show another text than the one the model gets. What cannot be read so is
// returned as it is.
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
