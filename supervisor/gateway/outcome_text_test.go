package gateway

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A server may write the _meta of our own outcomes, with any content beside it.
func TestOutcomeText(t *testing.T) {
	ours, _ := failedCall(&messages.Error{Outcome: messages.OutcomeUnknown, Text: "the server is gone"})
	for result, want := range map[string]string{
		string(ours): "the server is gone (outcome unknown: it may have run). It may have run: look at what it would have changed before calling again.",
		`{"content":[{"type":"text","text":"a server's"}],"isError":true}`: "",
		`{"content":[5],"_meta":{"mcpvisor/outcome":"x"}}`:                 "",
		`{"content":[{"text":7}],"_meta":{"mcpvisor/outcome":"x"}}`:        "",
		`{"content":[],"_meta":{"mcpvisor/outcome":"x"}}`:                  "",
		`{"content":{},"_meta":{"mcpvisor/outcome":"x"}}`:                  "",
		`{"_meta":{"mcpvisor/outcome":"x"}}`:                               "",
		`{"_meta":5}`:                                                      "",
	} {
		if got := outcomeText([]byte(result)); got != want {
			t.Errorf("%s: %q", result, got)
		}
	}
}
