package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// seriesLength is more calls by message than the manager lets run at once (4,096). seriesAtOnce of them are under way
	// together.
	seriesLength, seriesAtOnce = 4200, 20
	// seriesShare says on how many of the days with messages there is such a series: one in seriesShare. It takes ten times as
	// long as the rest of a day.
	seriesShare = 30
	// absentTool is the qualified name of a tool that no server has.
	absentTool = "nobody__has_this"
)

// scheduleSeries plans a long series of calls by message, few at once, of a tool that no server has. Each must be refused for
// that reason: a manager that counts the calls that run and forgets to take one off refuses the last ones because there are too many.
func (p *messageActor) scheduleSeries() {
	if w := p.world; seedOf("series", strconv.FormatUint(w.plan.Seed, 10))%seriesShare == 0 {
		w.timeline.planAction(w.plan.Heal/2, "", func() { w.users.runAsUser(p.sendSeries) })
	}
}

// sendSeries makes the calls. It reports the first that is answered otherwise, and makes no further ones.
func (p *messageActor) sendSeries() {
	replies := make(chan *messages.CallToolReply, seriesAtOnce)
	self := p.rootContext().Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if r, ok := c.Message().(*messages.CallToolReply); ok {
			replies <- r
		}
	}))
	defer p.rootContext().Stop(self)
	for n := 0; n < seriesLength; n += seriesAtOnce {
		for k := range seriesAtOnce {
			p.rootContext().RequestWithCustomSender(p.world.manager.PID(), &messages.CallTool{CallId: "series-" + strconv.Itoa(n+k), Tool: absentTool}, self)
		}
		for range seriesAtOnce {
			select {
			case r := <-replies:
				if problem := seriesProblem(n, r); problem != "" {
					p.world.reportBrokenPromise("", problem)
					return
				}
			case <-p.managerGone:
				return
			}
		}
		// Time must pass now and then, because so many messages in one instant look like a loop.
		time.Sleep(time.Millisecond)
	}
}

// seriesProblem returns what is wrong with the answer to a call of a tool that no server has, when so many such calls have
// ended before; empty if nothing is.
func seriesProblem(ended int, r *messages.CallToolReply) string {
	err := r.GetFailure().ToError()
	if messages.ClassOf(err) == messages.ClassInvalid {
		return ""
	}
	return fmt.Sprintf("a call by message of a tool that no server has was answered with %q (%v), after %d that had ended", r.GetOutcome(), err, ended)
}
