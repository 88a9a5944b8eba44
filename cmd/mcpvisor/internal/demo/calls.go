package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// demoCall is one tool of a server of the demo, with arguments that its schema accepts.
type demoCall struct {
	tool string
	args map[string]any
}

// demoTools lists the calls of the demo by server. The tools of servers that never connect are invented, since calls of them
// are not sent.
var demoTools = map[string][]demoCall{
	"clock":   {{"now", nil}, {"wait", map[string]any{"milliseconds": 50}}},
	"dice":    {{"roll", map[string]any{"sides": 20}}},
	"notes":   {{"add", map[string]any{"text": "call the demo"}}, {"list", nil}},
	"weather": {{"forecast", map[string]any{"city": "Oslo"}}},
	"quotes":  {{"quote", nil}},
	"crashes": {{"work", nil}},
	"silent":  {{"speak", nil}},
	"missing": {{"appear", nil}},
	"private": {{"open", nil}},
}

// demoCallTime bounds one call, and with it the time that the demo takes to end.
const demoCallTime = 3 * time.Second

// demoCalls calls the tools of every server of the demo in turn, one goroutine a server, until ctx ends, and waits for calls
// that were sent. The first call comes after a second, so that healthy servers are connected by then. ended is called
// concurrently.
func demoCalls(ctx context.Context, m *supervisor.Manager, ended func(server string, o messages.Outcome)) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return
	}
	var all sync.WaitGroup
	for server, tools := range demoTools {
		all.Go(func() {
			for i := 0; ; i++ {
				o := callOnce(ctx, m, server, tools[i%len(tools)])
				ended(server, o)
				pause := 200*time.Millisecond + rand.N(200*time.Millisecond)
				if o == messages.OutcomeNotSent {
					pause *= 3 // the server is not connected
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
}

// callOnce makes one call. The end of the run does not cut it off, because a call that was sent should show its true outcome.
func callOnce(ctx context.Context, m *supervisor.Manager, server string, c demoCall) messages.Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoCallTime)
	defer cancel()
	res, err := m.CallServerTool(ctx, server, c.tool, c.args)
	if err != nil {
		return messages.OutcomeOf(err)
	}
	return res.Outcome()
}
