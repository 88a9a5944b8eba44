package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

func TestSent(t *testing.T) {
	runCases(t, "I23", []storyCase{
		{name: "messages without a fault", want: invariant.Holds, story: `
			1s s1 received conn=1 method=initialize id=1
			2s s1 received conn=1 method=notifications/initialized`},
		{name: "a server saw what no client may send", want: invariant.Violated, why: "The request 7 was cancelled, and never sent (seen at 2s).", story: `
			1s s1 received conn=1 method=initialize id=1
			2s s1 received conn=1 method=notifications/cancelled
			2s s1 violation conn=1 name=I23 text=the_request_7_was_cancelled,_and_never_sent`},
		{name: "what another invariant is about", want: invariant.Holds, story: `
			1s s1 received conn=1 method=initialize id=1
			2s s1 violation conn=1 name=I20 text=another`},
		{name: "nobody sent anything", want: invariant.Inconclusive, story: `
			1s s1 open conn=1`},
	})
}
