package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestLetGo(t *testing.T) {
	const up = `
			0s     s1 phase phase=pending step=dialing epoch=2
			0s     s1 open conn=1
			10ms   s1 opened conn=1
			20ms   s1 phase phase=connected epoch=2
		`
	const under = up + `
			10s    s1 call call=c1 tool=write
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			11s    s1 command command=1 method=reconnect
		`
	const fetched = `
			10.5s  s1 received conn=1 method=tasks/get id=6 task=task-1
			11s    s1 command command=1 method=reconnect
			11.2s  s1 answered conn=1 method=tasks/get id=6 task=task-1
			11.2s  s1 received conn=1 method=tasks/result id=7 task=task-1
			11.8s  s1 answered conn=1 method=tasks/result id=7 task=task-1
		`
	const suspendedRead = `
			5s     s1 received conn=1 method=resources/read id=6
			5.1s   s1 answered conn=1 method=resources/read id=6 code=-32042
			11s    s1 command command=1 method=reconnect
		`
	modernAgent := func(p *scenario.Plan) {
		p.Agents = []scenario.PlannedAgent{{Name: "agent-1", As: "anna", Era: messages.EraModern, Over: scenario.OverHTTP}}
	}
	idle := func(p *scenario.Plan) { p.Servers[0].IdleTimeout = 5 * time.Second }
	offering := func(p *scenario.Plan) {
		idle(p)
		p.Servers[0].Offers = true
		p.Load = append(p.Load, scenario.PlannedLoad{Server: "s1", Read: "subscribe"}) // its reads count as uses
	}
	read := func(p *scenario.Plan) {
		idle(p)
		p.Load = append(p.Load, scenario.PlannedLoad{Server: "s1", Read: "prompt"})
	}
	readAny := func(p *scenario.Plan) {
		idle(p)
		p.Load = append(p.Load, scenario.PlannedLoad{Server: "s2", Read: "resource"})
	}
	readPrompts := func(p *scenario.Plan) {
		idle(p)
		p.Load = append(p.Load, scenario.PlannedLoad{Server: "s2", Read: "prompt"})
	}
	const unknownPrompt = `
			13s    s2 read call=c2 method=prompt
			13s    s2 read-end call=c2 method=prompt class=invalid
		`
	lazy := []string{"s1 connect=lazy"}
	const watched = up + `
			10s    s1 read call=w1 method=subscribe
			10.2s  s1 read-end call=w1 method=subscribe
		`
	const used = up + `
			10s    s1 call call=c1 tool=write
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			11s    s1 end call=c1 tool=write outcome=result
		`
	runCases(t, "I17", []storyCase{
		{name: "nobody asks and nobody rests", want: invariant.Inconclusive, why: "No connection was let go", story: up},
		{name: "a call ends while its server is reconnected", want: invariant.Holds, story: under + `
			14s    s1 executed conn=1 tool=write call=c1 value=1
			14s    s1 answered conn=1 method=tools/call id=5 call=c1
			14s    s1 end call=c1 tool=write outcome=result value=1 conn=1
			14s    s1 released conn=1
			90s    - closing
		`},
		{name: "a call is cut by a reconnect", want: invariant.Violated, why: "it may go on for 5s", story: under + `
			11s    s1 end call=c1 tool=write outcome=unknown class=canceled
			11s    s1 released conn=1
			90s    - closing
		`},
		{name: "a task asks for what nobody gives, as on seed 20995697", want: invariant.Holds, story: under + `
			11s    s1 end call=c1 tool=write outcome=unknown class=protocol text=the_task_asks_for_elicitation/create,_which_could_not_be_given:_nobody_could_be_asked
			11s    s1 released conn=1
			90s    - closing
		`},
		{name: "a call is cut with another error of the protocol", want: invariant.Violated, why: "it may go on for 5s", story: under + `
			11s    s1 end call=c1 tool=write outcome=unknown class=protocol text=the_connection_was_closed
			11s    s1 released conn=1
			90s    - closing
		`},
		{name: "a call is cut, and its server ends because of that", want: invariant.Violated, why: "it may go on for 5s", story: under + `
			11s    s1 down conn=1 class=exited
			11s    s1 end call=c1 tool=write outcome=unknown class=canceled
			11s    s1 released conn=1
			90s    - closing
		`},
		{name: "a call is cut after the drain", want: invariant.Holds, story: under + `
			16s    s1 end call=c1 tool=write outcome=unknown class=canceled
			16s    s1 released conn=1
			90s    - closing
		`},
		{name: "its server died meanwhile", want: invariant.Holds, story: under + `
			12s    s1 down conn=1 class=exited
			12s    s1 end call=c1 tool=write outcome=unknown class=exited
			12s    s1 released conn=1
			90s    - closing
		`},
		{name: "disconnect does not wait", want: invariant.Holds, story: up + `
			10s    s1 call call=c1 tool=write
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			11s    s1 command command=1 method=disconnect
			11s    s1 done command=1 method=disconnect
			11s    s1 end call=c1 tool=write outcome=unknown class=canceled
			11s    s1 released conn=1
			90s    - closing
		`},
		{name: "disable cuts a call", want: invariant.Violated, why: "asked for disable", story: up + `
			10s    s1 call call=c1 tool=write
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			11s    s1 command command=1 method=disable
			11s    s1 done command=1 method=disable
			11s    s1 end call=c1 tool=write outcome=unknown class=canceled
			90s    - closing
		`},
		{name: "the connection stays for ever", want: invariant.Violated, why: "was still there", story: up + `
			10s    s1 command command=1 method=reconnect
			90s    - closing
		`},
		{name: "a connection stays until the drain has passed", want: invariant.Violated, why: "its calls had ended, or had had their 5s, at 12s", story: under + `
			12s    s1 end call=c1 tool=write outcome=result
			16s    s1 released conn=1
			90s    - closing
		`},
		{name: "a connection is kept by a call for longer than the drain", want: invariant.Violated, why: "had had their 5s, at 16s", story: under + `
			20s    s1 end call=c1 tool=write outcome=result
			20s    s1 released conn=1
			90s    - closing
		`},
		{name: "a connection of a server that was removed and added is not that of the added one", want: invariant.Holds, story: up + `
			10s    s1 call call=c1 tool=write
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			11s    s1 command command=1 method=remove
			11s    s1 done command=1 method=remove
			13s    s1 command command=2 method=add
			13s    s1 done command=2 method=add
			14s    s1 command command=3 method=disconnect
			15s    s1 end call=c1 tool=write outcome=result
			15s    s1 released conn=1
			15s    s1 done command=3 method=disconnect
			90s    - closing
		`},
		// Seed 20351094: a program fetched the result of a task that had ended.
		// Seed 20361948: the prompts of all servers were listed for the nearest name.
		{name: "a prompt that nobody has is a use of a lazy server", servers: []string{"s1 connect=lazy", "s2"}, plan: readPrompts, want: invariant.Holds, story: used + unknownPrompt + `
			18.5s  s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a prompt that is there is no use of another server", servers: []string{"s1 connect=lazy", "s2"}, plan: readPrompts, want: invariant.Violated, why: "is to be let go",
			story: used + strings.ReplaceAll(unknownPrompt, " class=invalid", "") + `
			18.5s  s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "the result of a task is fetched while its server is reconnected", want: invariant.Holds, story: up + fetched + `
			11.8s  s1 released conn=1
			90s    - closing
		`},
		// Seed 20360587: a read of a resource waited for a person, and was then sent again.
		{name: "a read waits for a person while its server is reconnected", want: invariant.Holds, story: up + `
			10.5s  s1 read call=c1 method=resource
			10.5s  s1 received conn=1 method=resources/read id=6
			10.6s  s1 answered conn=1 method=resources/read id=6 code=-32042
			11s    s1 command command=1 method=reconnect
			12s    s1 received conn=1 method=resources/read id=7
			12.1s  s1 answered conn=1 method=resources/read id=7
			12.1s  s1 read-end call=c1 method=resource
			12.1s  s1 released conn=1
			90s    - closing
		`},
		{name: "a read waits for an agent of the modern era that has gone, as on seed 20983542", plan: modernAgent, want: invariant.Holds, story: up + suspendedRead + `
			16s    s1 released conn=1
			90s    - closing
		`},
		{name: "a read has waited for an agent and its server stays longer", plan: modernAgent, want: invariant.Violated, why: "was still there", story: up + suspendedRead + `
			30s    s1 released conn=1
			90s    - closing
		`},
		{name: "no agent is of the modern era", want: invariant.Violated, why: "was still there at 11.125s", story: up + suspendedRead + `
			16s    s1 released conn=1
			90s    - closing
		`},
		{name: "a connection stays after a read that had waited for a person", want: invariant.Violated, why: "nothing kept it", story: up + `
			10.5s  s1 read call=c1 method=resource
			10.5s  s1 received conn=1 method=resources/read id=6
			10.6s  s1 answered conn=1 method=resources/read id=6
			10.6s  s1 read-end call=c1 method=resource
			11s    s1 command command=1 method=reconnect
			12s    s1 released conn=1
			90s    - closing
		`},
		{name: "a connection stays although what was read is there", want: invariant.Violated, why: "had been answered, or had had its 5s, at 11.8s", story: up + fetched + `
			12s    s1 released conn=1
			90s    - closing
		`},
		{name: "a connection stays although a read has had its time", want: invariant.Violated, why: "at 16s", story: up + `
			10.5s  s1 received conn=1 method=prompts/get id=6
			11s    s1 command command=1 method=reconnect
			20s    s1 released conn=1
			90s    - closing
		`},
		{name: "a connection stays although nothing is under way", want: invariant.Violated, why: "nothing kept it", story: up + `
			10s    s1 command command=1 method=respec
			15s    s1 released conn=1
			90s    - closing
		`},
		{name: "a lazy server rests in time", servers: lazy, plan: idle, want: invariant.Holds, story: used + `
			15s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "the time does not begin anew with a use", servers: lazy, plan: idle, want: invariant.Violated, why: "it was used at 10s", story: used + `
			13s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a watched server rests", servers: lazy, plan: offering, want: invariant.Violated, why: "a caller watches a resource of it since 10.2s", story: watched + `
			17s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a server rests whose last watch was ended", servers: lazy, plan: offering, want: invariant.Inconclusive, why: "No connection was let go", story: watched + `
			12s    s1 read call=w2 method=unsubscribe
			12.2s  s1 read-end call=w2 method=unsubscribe
			19s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a server that was watched before its owner gave a command rests", servers: lazy, plan: offering, want: invariant.Inconclusive, why: "No connection was let go",
			story: watched + `
			11s    s1 command command=1 method=enable
			11.1s  s1 done command=1 method=enable
			17s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a watched server stays", servers: lazy, plan: offering, want: invariant.Holds, story: watched + `
			40s    s1 phase phase=pending step=restarting epoch=2
			90s    - closing
		`},
		{name: "a lazy server that was deaf gets a call late, as on seed 133", servers: lazy, plan: idle, want: invariant.Holds, story: up + `
			10s    s1 fault-on fault=1 name=deaf
			10.1s  s1 call call=c1 tool=write
			18s    s1 fault-off fault=1 name=deaf
			18s    s1 received conn=1 method=tools/call id=5 call=c1
			18.1s  s1 end call=c1 tool=write outcome=result
			18.2s  s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a lazy server never rests", servers: lazy, plan: idle, want: invariant.Violated, why: "was used last until 11s", story: used + `
			90s    - closing
		`},
		{name: "a call from before a disabling keeps the adopted connection of a lazy server, as on seed 9764108", servers: lazy, plan: idle,
			want: invariant.Holds, story: up + `
			10s    s1 call call=c1 tool=write
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			11s    s1 phase phase=disabled epoch=2 warm=true
			20s    s1 phase phase=connected epoch=2
			29s    s1 end call=c1 tool=write outcome=result
			29.5s  s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a list that is never answered keeps a lazy server until the manager gives it up", servers: lazy, plan: idle, want: invariant.Holds,
			story: used + `
			12s    s1 received conn=1 method=tools/list id=6
			42s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a page that is never answered does so too, asked for in the instant of the page before it, as on seed 20003517", servers: lazy, plan: idle,
			want: invariant.Holds, story: used + `
			12s    s1 received conn=1 method=tools/list id=6
			13s    s1 received conn=1 method=tools/list id=7
			13s    s1 answered conn=1 method=tools/list id=6
			42s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a call that its connection could not send used it, as on seed 20840337", servers: lazy, plan: idle, want: invariant.Holds,
			story: used + `
			15s    s1 call call=c9 tool=write
			15s    s1 end call=c9 tool=write outcome=not-sent class=invalid
			20s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a call that has waited for a server that does not read used it, as on seed 30100022", servers: lazy, plan: idle, want: invariant.Holds,
			story: used + `
			14s    s1 call call=c9 tool=write
			15s    s1 end call=c9 tool=write outcome=not-sent class=timeout
			20s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a call that was never tried did not use it", servers: lazy, plan: idle, want: invariant.Violated, why: "was used last until 11s", story: used + `
			15s    s1 call call=c9 tool=write
			15s    s1 end call=c9 tool=write outcome=not-sent class=throttled
			20s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a list that was answered keeps a lazy server no longer", servers: lazy, plan: idle, want: invariant.Violated,
			why: "was used last until 11s", story: used + `
			12s    s1 received conn=1 method=tools/list id=6
			12s    s1 answered conn=1 method=tools/list id=6
			42s    s1 phase phase=pending step=idle epoch=2
			90s    - closing
		`},
		{name: "a read by its address alone uses all servers", servers: lazy, plan: readAny, want: invariant.Inconclusive, why: "No connection was let go",
			story: used + `
			90s    - closing
		`},
		{name: "reads that leave no mark may have used it", servers: lazy, plan: read, want: invariant.Inconclusive, why: "No connection was let go",
			story: used + `
			90s    - closing
		`},
		{name: "a call was sent again over the next connection", servers: lazy, plan: idle, want: invariant.Holds, story: up + `
			10s    s1 call call=c1 tool=read
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			50s    s1 phase phase=pending step=restarting epoch=2
			50s    s1 released conn=1
			51s    s1 open conn=2
			51s    s1 opened conn=2
			51s    s1 phase phase=connected epoch=3
			51s    s1 received conn=2 method=tools/call id=5 call=c1
			52s    s1 end call=c1 tool=read outcome=result
			57s    s1 phase phase=pending step=idle epoch=3
			90s    - closing
		`},
		{name: "a call was sent again and the next connection is kept", servers: lazy, plan: idle, want: invariant.Violated,
			why: "was used last until 52s", story: up + `
			10s    s1 call call=c1 tool=read
			10s    s1 received conn=1 method=tools/call id=5 call=c1
			50s    s1 phase phase=pending step=restarting epoch=2
			50s    s1 released conn=1
			51s    s1 open conn=2
			51s    s1 opened conn=2
			51s    s1 phase phase=connected epoch=3
			51s    s1 received conn=2 method=tools/call id=5 call=c1
			52s    s1 end call=c1 tool=read outcome=result
			90s    - closing
		`},
	})
}

func TestPrompt(t *testing.T) {
	const parked = `
			0s     s1 open conn=1
			0s     s1 phase phase=pending step=dialing epoch=2
			1s     s1 refused conn=1 class=network
			1s     s1 phase phase=failed retry=parked next=300s epoch=2
			100s   s1 command command=1 method=reconnect
		`
	const waits = `
			0s     s1 phase phase=pending step=dialing epoch=2
			0s     s1 open conn=1
			0s     s2 phase phase=pending step=queued epoch=1
		`
	oneSlot := func(p *scenario.Plan) { p.Limits.Processes = 1 }
	const removed = `
			0s     s1 phase phase=connected epoch=2
			10s    s1 command command=1 method=remove
			10s    s1 done command=1 method=remove
		`
	runCases(t, "I18", []storyCase{
		{name: "nobody asks", want: invariant.Inconclusive, why: "Nobody asked", story: `0s s1 open conn=1`},
		{name: "dialled now", want: invariant.Holds, story: parked + `
			100s   s1 open conn=2
			400s   - closing
			400s   s1 status phase=connected text=end
		`},
		{name: "dialled when the old timer rings", want: invariant.Violated, why: "It was dialled at 5m0s", story: parked + `
			300s   s1 open conn=2
			400s   - closing
			400s   s1 status phase=connected text=end
		`},
		{name: "never dialled", want: invariant.Violated, why: "never dialled again", story: parked + `
			400s   - closing
			400s   s1 status phase=failed text=end
		`},
		{name: "who waits for the gate starts when it has a slot", want: invariant.Holds, servers: []string{"s1", "s2"}, plan: oneSlot, story: waits + `
			2s     s2 phase phase=pending step=dialing epoch=2
			2s     s2 open conn=1
			90s    - closing
			90s    s1 status phase=connected text=end
			90s    s2 status phase=connected text=end
		`},
		{name: "who waits for the gate waits on", want: invariant.Violated, why: "a slot of the gate has been free since 2s", servers: []string{"s1", "s2"}, plan: oneSlot, story: waits + `
			30s    s2 phase phase=pending step=dialing epoch=2
			30s    s2 open conn=1
			90s    - closing
			90s    s1 status phase=connected text=end
			90s    s2 status phase=connected text=end
		`},
		{name: "who waits for the gate has a connection that is not gone", want: invariant.Holds, servers: []string{"s2"}, plan: oneSlot, story: `
			0s     s2 phase phase=pending step=dialing epoch=2
			0s     s2 open conn=1
			1s     s2 phase phase=pending step=queued epoch=2
			29s    s2 released conn=1
			29s    s2 phase phase=pending step=dialing epoch=3
			29s    s2 open conn=2
			46s    - closing
			46s    s2 status phase=pending text=end
		`},
		{name: "what was removed is gone", want: invariant.Holds, story: removed + `
			10s    s1 status phase=disabled text=after_its_removal
			12s    s1 removed
			90s    - closing
		`},
		{name: "a look in the instant of the answer may have come before it", want: invariant.Holds, story: removed + `
			10s    s1 status phase=connected text=heal
			10s    s1 status phase=disabled text=after_its_removal
			12s    s1 removed
			90s    - closing
		`},
		// Seed 20320854: an add waited for the end of the first removal, and a second removal for the add.
		{name: "it was there between two removals of one instant", want: invariant.Holds, story: removed + `
			12s    s1 removed
			12s    s1 removed
			12s    s1 status phase=pending step=queued text=after_its_end
			90s    - closing
		`},
		{name: "it is there after one removal", want: invariant.Violated, why: "it stands in the status at 12s", story: removed + `
			12s    s1 removed
			12s    s1 status phase=pending step=queued text=after_its_end
			90s    - closing
		`},
		{name: "it is there long after two removals", want: invariant.Violated, why: "it stands in the status at 13s", story: removed + `
			12s    s1 removed
			12s    s1 removed
			13s    s1 status phase=pending step=queued text=now_and_then
			90s    - closing
		`},
		{name: "what was removed is still there", want: invariant.Violated, why: "it stands in the status at 1m30s", story: removed + `
			12s    s1 removed
			90s    - closing
			90s    s1 status phase=disabled text=end
		`},
		{name: "what was removed is shown as connected", want: invariant.Violated, why: "as connected", story: removed + `
			10s    s1 status phase=connected text=after_its_removal
			12s    s1 removed
		`},
		{name: "the end is never said", want: invariant.Violated, why: "has not said", story: removed + `
			90s    - closing
		`},
		{name: "the end is said when a dial returns", want: invariant.Holds, story: `
			5s     s1 fault-on fault=1 name=stuck-dial
		` + removed + `
			70s    s1 status phase=disabled text=heal
			70s    s1 fault-off fault=1 name=stuck-dial
			70.1s  s1 removed
			90s    - closing
		`},
		{name: "the end is not said when a dial has returned", want: invariant.Violated, why: "has not said", story: `
			5s     s1 fault-on fault=1 name=stuck-dial
		` + removed + `
			70s    s1 fault-off fault=1 name=stuck-dial
			90s    - closing
		`},
		{name: "who is there is not in the status", want: invariant.Violated, why: "does not stand in the status", story: `
			0s     s1 phase phase=connected epoch=2
			90s    - closing
		`},
	})
}

func TestWatchers(t *testing.T) {
	const call = `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1s     s1 told method=call-started tool=write
			2s     s1 end call=c1 tool=write outcome=result
		`
	const alone = `
			1s     s1 call call=a1-1 tool=write agent=agent-1 by=anna
			1s     s1 received conn=1 method=tools/call id=5 call=a1-1
			1s     s1 told method=call-started tool=write
			2s     s1 left call=a1-1 tool=write agent=agent-1 by=anna
			2s     s1 end call=a1-1 tool=write outcome=unknown class=canceled agent=agent-1 by=anna name=unseen
		`
	const gap = call + `
			1.9s   - stream-cut method=tools/call id=1 about=c1 agent=agent-1
			2s     - stream-back method=tools/call id=1 about=c1 agent=agent-1
		`
	waitedGap := strings.NewReplacer("1s     s1 received", "1.5s   s1 received", "1s     s1 told", "1.5s   s1 told").Replace(gap)
	const refused = joinedAgents + call + `
			2s     s1 told method=call-ended tool=write outcome=result took=1s
			2s     s1 call call=a1-1 tool=write agent=agent-1 by=anna
			3s     - tasked agent=agent-1 by=anna about=a1-1 deadline=1h
			5s     s1 end call=a1-1 tool=write outcome=not-sent class=network agent=agent-1 by=anna
			9s     - closed
		`
	const secondRefused = `
			2s     s1 call call=a1-2 tool=write agent=agent-1 by=anna
			3s     - tasked agent=agent-1 by=anna about=a1-2 deadline=1h
			3s     s1 end call=a1-2 tool=write outcome=not-sent class=network agent=agent-1 by=anna
		`
	const refusedTold = `
			3s     s1 told method=call-started tool=write
			3s     s1 told method=call-ended tool=write outcome=not-sent
		`
	const foundLater = `
			2.5s   - stream-cut method=tools/call id=1 about=a1-1 agent=agent-1
			2.8s   s1 told method=call-started tool=write
			2.8s   s1 told method=call-ended tool=write outcome=not-sent
		`
	runCases(t, "I19", []storyCase{
		{name: "nobody watches", want: invariant.Inconclusive, why: "No tool was called", story: `0s s1 open conn=1`},
		{name: "told", want: invariant.Holds, story: call + `
			2s     s1 told method=call-ended tool=write outcome=result took=1s
			9s     - closed
		`},
		{name: "the end is not told", want: invariant.Violated, why: "never that it ended", story: call + `
			9s     - closed
		`},
		// Seed 20361450: its agent took it back in the moment in which its server asked for input, and the call waited for that.
		{name: "a call that its agent has left alone is told later", want: invariant.Holds, story: alone + `
			4s     s1 told method=call-ended tool=write outcome=unknown took=3s
			9s     - closed
		`},
		{name: "a call that its agent has left alone is not told", want: invariant.Violated, why: "never that it ended", story: alone + `
			9s     - closed
		`},
		{name: "a call that its agent has given up is told later", want: invariant.Violated, why: "no watcher was told of that end", story: strings.ReplaceAll(alone, " name=unseen", "") + `
			4s     s1 told method=call-ended tool=write outcome=unknown took=3s
			9s     - closed
		`},
		{name: "another outcome is told", want: invariant.Violated, why: "no watcher was told of that end", story: call + `
			2s     s1 told method=call-ended tool=write outcome=tool-error took=1s
			9s     - closed
		`},
		{name: "told while its agent had no connection", want: invariant.Holds, story: gap + `
			1.95s  s1 told method=call-ended tool=write outcome=result took=950ms
			9s     - closed
		`},
		{name: "told in the gap of a call that had waited to be sent, as on seed 20966698", want: invariant.Holds, story: waitedGap + `
			1.95s  s1 told method=call-ended tool=write outcome=result took=450ms
			9s     - closed
		`},
		{name: "told in the gap with another beginning", want: invariant.Violated, why: "never that it ended", story: waitedGap + `
			1.95s  s1 told method=call-ended tool=write outcome=result took=350ms
			9s     - closed
		`},
		{name: "told before its agent had lost its connection", want: invariant.Violated, why: "no watcher was told of that end", story: gap + `
			1.5s   s1 told method=call-ended tool=write outcome=result took=500ms
			9s     - closed
		`},
		{name: "another outcome is told while its agent had no connection", want: invariant.Violated, why: "no watcher was told of that end", story: gap + `
			1.95s  s1 told method=call-ended tool=write outcome=tool-error took=950ms
			9s     - closed
		`},
		// Seed 20395161: the call waited in its agent's window, became a task with its refusal, and its agent asked for that later, as it cancelled the task.
		{name: "the refusal of a task is told", want: invariant.Holds, story: refused + refusedTold},
		{name: "the refusal of a task is told twice", want: invariant.Violated, why: "told at 3s that a call of tool write ended with not-sent, and no caller got that",
			story: refused + refusedTold + refusedTold},
		{name: "a refusal is told after the call became a task", want: invariant.Violated, why: "no caller got that", story: strings.ReplaceAll(refused+refusedTold, "3s     s1", "4s     s1")},
		{name: "a refusal is told before the call became a task", want: invariant.Violated, why: "no caller got that", story: strings.ReplaceAll(refused+refusedTold, "3s     s1", "2.8s   s1")},
		{name: "a task is told to have had a result before it was refused", want: invariant.Violated, why: "no caller got that", story: strings.ReplaceAll(refused+refusedTold, "outcome=not-sent\n", "outcome=result\n")},
		{name: "the refusal of a task is told before its agent finds that", want: invariant.Holds, story: refused + foundLater},
		{name: "another call is refused as a task is", want: invariant.Holds, story: refused + secondRefused + refusedTold + refusedTold},
		{name: "one refusal more is told than there are a call and a task", want: invariant.Violated, why: "told at 3s that a call of tool write ended with not-sent, and no caller got that",
			story: refused + refusedTold + refusedTold + refusedTold + `
			3s     s1 call call=c1 tool=write
			3s     s1 end call=c1 tool=write outcome=not-sent class=network
		`},
		{name: "the end of nothing is told", want: invariant.Violated, why: "no caller got that", story: call + `
			2s     s1 told method=call-ended tool=write outcome=result took=1s
			3s     s1 told method=call-ended tool=write outcome=unknown took=1s
			9s     - closed
		`},
		{name: "a beginning without an end", want: invariant.Violated, why: "never that it ended", story: call + `
			2s     s1 told method=call-ended tool=write outcome=result took=1s
			3s     s1 told method=call-started tool=read
			9s     - closed
		`},
	})
}
