package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// demoCall is one tool of a server of the demo, with arguments that it takes.
type demoCall struct {
	tool string
	args map[string]any
}

// demoTools are what the demo calls. Those of the servers that never come are invented: the calls are not sent anyway.
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

// demoCallTime bounds one call, and with it the end of the demo.
const demoCallTime = 3 * time.Second

// demoCalls calls every server of the demo until ctx ends. Calls that are under way then are waited for.
// They begin after a moment, in which those that are well connect.
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
					pause *= 3 // nobody is there
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

func callOnce(ctx context.Context, m *supervisor.Manager, server string, c demoCall) messages.Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoCallTime)
	defer cancel()
	res, err := m.CallServerTool(ctx, server, c.tool, c.args)
	if err != nil {
		return messages.OutcomeOf(err)
	}
	return res.Outcome()
}
