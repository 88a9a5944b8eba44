package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// doOffer performs the lines of a story about resources, templates, prompts and completion. It reports false for
// other lines.
func (w *storyRunner) doOffer(verb, rest string) bool {
	label := verb
	if strings.HasSuffix(verb, ":") { // a: read x
		label = verb + " "
		verb, rest, _ = strings.Cut(rest, " ")
		label += verb
	}
	s := w.session
	switch verb {
	case "resources":
		w.async(label, "", func(ctx context.Context) string { return describeListing(s.Resources(ctx)) })
	case "templates":
		w.async(label, "", func(ctx context.Context) string { return describeListing(s.ResourceTemplates(ctx)) })
	case "prompts":
		w.async(label, "", func(ctx context.Context) string { return describeListing(s.Prompts(ctx)) })
	case "read":
		w.async(label, "", func(ctx context.Context) string { return describeResult(s.ReadResource(ctx, rest, nil)) })
	case "prompt":
		name, text, _ := strings.Cut(rest, " ")
		var args map[string]string
		if text != "" {
			w.decode(text, &args)
		}
		w.async(label, "", func(ctx context.Context) string { return describeResult(s.GetPrompt(ctx, name, args, nil)) })
	case "complete":
		var r messages.CompleteRequest
		w.decode(rest, &r)
		w.async(label, "", func(ctx context.Context) string {
			c, err := s.Complete(ctx, r)
			if err != nil {
				return describe(err)
			}
			return fmt.Sprintf("%d values %.60q, total %d, more %v", len(c.Values), c.Values, c.Total, c.HasMore)
		})
	case "subscribe":
		w.async(label, "", func(ctx context.Context) string { return describe(s.Subscribe(ctx, rest)) })
	case "unsubscribe":
		w.async(label, "", func(ctx context.Context) string { return describe(s.Unsubscribe(ctx, rest)) })
	case "reopened":
		w.wire.sink.(transports.StreamReopenSink).StreamReopened()
	default:
		return false
	}
	return true
}

func (w *storyRunner) decode(text string, into any) {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

// describeListing writes a list: the fields of each entry, without its bytes.
func describeListing[T any](l session.Listing[T], err error) string {
	if err != nil {
		return describe(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d, %d quarantined, public %v", len(l.Items), len(l.Quarantined), l.Public)
	for _, item := range l.Items {
		raw, _ := json.Marshal(item)
		fmt.Fprintf(&b, "\n    %s", raw)
	}
	for _, q := range l.Quarantined {
		fmt.Fprintf(&b, "\n    quarantined %s: %s", q.Name, q.Reason)
	}
	return b.String()
}

// describeResult writes a result as it came, or its error with the sentinels that it wraps.
func describeResult(raw json.RawMessage, err error) string {
	switch {
	case errors.Is(err, messages.ErrUnknownResource):
		return "no such resource: " + describe(err)
	case errors.Is(err, messages.ErrUnknownPrompt):
		return "no such prompt: " + describe(err)
	case err != nil:
		return describe(err)
	}
	return string(raw)
}
