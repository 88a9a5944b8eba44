package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestTheStateMachine(t *testing.T) {
	const up = `
		0s     s1 phase phase=pending step=queued epoch=1
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		0s     s1 phase phase=pending step=handshaking epoch=2
		10ms   s1 answered conn=1 method=initialize
		10ms   s1 phase phase=pending step=listing epoch=2
		20ms   s1 answered conn=1 method=tools/list
		20ms   s1 listed conn=1
		20ms   s1 phase phase=connected epoch=2
	`
	const off = up + `
		1s     s1 command command=1 method=disable
		1s     s1 phase phase=disabled warm=true epoch=2
		1s     s1 done command=1 method=disable
	`
	const unauthorized = up + `
		1s     s1 phase phase=needs-auth epoch=2 class=unauthorized
		1s     s1 released conn=1
	`
	const used = up + `
		1s     s1 call call=c1 tool=read
		1s     s1 received conn=1 method=tools/call call=c1
	`
	lazy := func(p *scenario.Plan) { p.Servers[0].Connect = messages.Lazy }
	const stuck = up + `
			1s     s1 fault-on fault=1 name=stuck-dial
			1s     s1 command command=1 method=remove
			1s     s1 phase phase=disabled epoch=2
			1s     s1 done command=1 method=remove
			2s     s1 command command=2 method=add
			2s     s1 done command=2 method=add
		`
	runCases(t, "I8", []storyCase{
		{name: "a lazy server rests after its calls", plan: lazy, want: invariant.Holds, story: used + `
			2s     s1 end call=c1 tool=read outcome=result
			5s     s1 phase phase=pending step=idle epoch=2
			5s     s1 released conn=1
		`},
		{name: "a lazy server rests during a call", plan: lazy, want: invariant.Violated, why: "because nobody used it", story: used + `
			5s     s1 phase phase=pending step=idle epoch=2
			5s     s1 released conn=1
			9s     s1 end call=c1 tool=read outcome=unknown
		`},
		{name: "a lazy server rests while a call whose answer was lost waits for what comes after it", plan: lazy, want: invariant.Holds, story: used + `
			2s     s1 fault-on fault=1 name=die-mid-call
			2s     s1 fired conn=1 fault=1 name=die-mid-call
			4s     s1 fault-off fault=1 name=die-mid-call
			5s     s1 phase phase=pending step=idle epoch=2
			5s     s1 released conn=1
			9s     s1 end call=c1 tool=read outcome=unknown class=network
		`},
		{name: "a day", want: invariant.Holds, story: off + `
			2s     s1 command command=2 method=enable
			2s     s1 phase phase=connected epoch=2
			2s     s1 done command=2 method=enable
			3s     s1 down conn=1 class=exited
			3s     s1 phase phase=pending step=restarting epoch=2 class=exited
			3.02s  s1 released conn=1
			3.02s  s1 phase phase=pending step=restarting epoch=2 retry=retry next=3.5s
			3.5s   s1 phase phase=pending step=dialing epoch=3
			3.5s   s1 open conn=2
			3.5s   s1 refused conn=2 class=config
			3.5s   s1 phase phase=failed epoch=3 class=config
			3.5s   s1 phase phase=failed epoch=3 class=config retry=none
			4s     s1 command command=3 method=respec
			4s     s1 phase phase=pending step=queued epoch=3
			4s     s1 phase phase=pending step=dialing epoch=4
			4s     s1 open conn=3
			5s     - closing
		`},
		{name: "what is added again keeps its connection", want: invariant.Holds, story: off + `
			2s     s1 command command=2 method=add
			2s     s1 phase phase=connected epoch=2
			2s     s1 done command=2 method=add
			9s     - closing
		`},
		{name: "what is added again lists its tools first if they changed", want: invariant.Holds, story: off + `
			2s     s1 command command=2 method=add
			2s     s1 phase phase=pending step=listing epoch=2
			2.1s   s1 phase phase=connected epoch=2
			2.1s   s1 done command=2 method=add
			9s     - closing
		`},
		{name: "what its spec disables is disabled when it is added again", servers: []string{"s1 disabled=true"}, want: invariant.Holds, story: `
			0s     s1 phase phase=disabled epoch=1
			1s     s1 command command=1 method=enable
			1s     s1 phase phase=pending step=queued epoch=1
			1s     s1 phase phase=pending step=dialing epoch=2
			1s     s1 open conn=1
			1s     s1 phase phase=pending step=handshaking epoch=2
			1.01s  s1 answered conn=1 method=initialize
			1.01s  s1 phase phase=pending step=listing epoch=2
			1.02s  s1 answered conn=1 method=tools/list
			1.02s  s1 phase phase=connected epoch=2
			1.02s  s1 done command=1 method=enable
			2s     s1 command command=2 method=add
			2s     s1 phase phase=disabled warm=true epoch=2
			2s     s1 done command=2 method=add
			9s     - closing
		`},
		{name: "another spec keeps no connection", want: invariant.Violated, why: "from disabled (warm) to connected", story: off + `
			2s     s1 command command=2 method=respec
			2s     s1 phase phase=connected epoch=2
			9s     - closing
		`},
		{name: "enabled and reconnected in one instant", want: invariant.Holds, story: off + `
			2s     s1 command command=2 method=enable
			2s     s1 command command=3 method=reconnect
			2s     s1 released conn=1
			2s     s1 open conn=2
			2s     s1 phase phase=connected epoch=2
			2s     s1 phase phase=pending step=closing epoch=2
			2s     s1 phase phase=pending step=queued epoch=2
			2s     s1 phase phase=pending step=dialing epoch=3
			2s     s1 phase phase=pending step=handshaking epoch=3
			2s     s1 done command=2 method=enable
			2.01s  s1 answered conn=2 method=initialize
			2.01s  s1 phase phase=pending step=listing epoch=3
			2.02s  s1 answered conn=2 method=tools/list
			2.02s  s1 phase phase=connected epoch=3
			2.02s  s1 done command=3 method=reconnect
			9s     - closing
		`},
		{name: "no phase was published", want: invariant.Inconclusive, why: "no phase", story: `0s s1 open conn=1`},
		{name: "a reconnect revives what was disabled", want: invariant.Violated, why: "nobody asked for it", story: off + `
			5s     s1 phase phase=pending step=queued epoch=2
			9s     - closing
		`},
		{name: "a late dial of what was disabled", want: invariant.Violated, why: "was disabled by its owner at 1s and was dialled at 5s", story: off + `
			5s     s1 open conn=2
			9s     - closing
		`},
		{name: "disable is answered and nothing happens", want: invariant.Violated, why: "The manager still said connected", story: up + `
			1s     s1 command command=1 method=disable
			1s     s1 done command=1 method=disable
			9s     - closing
		`},
		{name: "what was disabled in the configuration is dialled", servers: []string{"s1 disabled=true"}, want: invariant.Violated,
			why: "disabled by its owner at 0s", story: `
			0s     s1 phase phase=disabled
			5s     s1 open conn=1
			9s     - closing
		`},
		{name: "what was removed comes back", want: invariant.Violated, why: "nobody added it", story: up + `
			1s     s1 command command=1 method=remove
			1s     s1 phase phase=disabled epoch=2
			1s     s1 removed
			1s     s1 done command=1 method=remove
			5s     s1 phase phase=pending step=queued epoch=3
			9s     - closing
		`},
		{name: "what was removed and added comes back", want: invariant.Holds, story: up + `
			1s     s1 command command=1 method=remove
			1s     s1 phase phase=disabled epoch=2
			1s     s1 released conn=1
			1s     s1 removed
			1s     s1 done command=1 method=remove
			5s     s1 command command=2 method=add
			5s     s1 phase phase=pending step=queued epoch=3
			9s     - closing
		`},
		{name: "what was added again waits for a dial that does not return", want: invariant.Holds, story: stuck + `
			900s   s1 fault-off fault=1 name=stuck-dial
			901s   s1 removed
			901s   s1 phase phase=pending step=queued epoch=3
			999s   - closing
		`},
		{name: "what was added again begins long after a dial that did not return", want: invariant.Violated, why: "nobody added it", story: stuck + `
			700s   s1 fault-off fault=1 name=stuck-dial
			901s   s1 removed
			901s   s1 phase phase=pending step=queued epoch=3
			999s   - closing
		`},
		{name: "what was removed is dialled", want: invariant.Violated, why: "was removed by its owner at 1s and was dialled at 5s", story: up + `
			1s     s1 command command=1 method=remove
			1s     s1 phase phase=disabled epoch=2
			1s     s1 removed
			1s     s1 done command=1 method=remove
			5s     s1 open conn=2
			9s     - closing
		`},
		{name: "a wrong token is tried again and again", want: invariant.Violated, why: "and was dialled at 30s", story: unauthorized + `
			30s    s1 open conn=2
			99s    - closing
		`},
		{name: "out of needs-auth by itself", want: invariant.Violated, why: "from needs-auth to pending (queued)", story: unauthorized + `
			30s    s1 phase phase=pending step=queued epoch=2
			99s    - closing
		`},
		{name: "out of needs-auth by other credentials", want: invariant.Holds, story: unauthorized + `
			30s    s1 auth
			30s    s1 phase phase=pending step=queued epoch=2
			30s    s1 phase phase=pending step=dialing epoch=3
			30s    s1 open conn=2
			99s    - closing
		`},
		{name: "what is never tried again is dialled", want: invariant.Violated, why: "failed (none) since 0s", story: `
			0s     s1 phase phase=failed class=config retry=none
			5s     s1 open conn=1
			9s     - closing
		`},
		{name: "no edge", want: invariant.Violated, why: "the state machine has no such step", story: up + `
			1s     s1 phase phase=pending step=handshaking epoch=2
			9s     - closing
		`},
		{name: "failed becomes connected", want: invariant.Violated, why: "from failed to connected", story: `
			0s     s1 open conn=1
			0s     s1 answered conn=1 method=initialize
			0s     s1 answered conn=1 method=tools/list
			0s     s1 phase phase=failed retry=retry
			1s     s1 phase phase=connected
			9s     - closing
		`},
		{name: "an epoch falls", want: invariant.Violated, why: "The epoch fell from 2 to 1", story: up + `
			1s     s1 phase phase=pending step=restarting epoch=1
			9s     - closing
		`},
		{name: "connected before the list", want: invariant.Violated, why: "has not sent a list of its tools", story: `
			0s     s1 open conn=1
			10ms   s1 answered conn=1 method=initialize
			10ms   s1 phase phase=connected epoch=2
			20ms   s1 answered conn=1 method=tools/list
			9s     - closing
		`},
		{name: "connected before the handshake", want: invariant.Violated, why: "its handshake was not answered", story: `
			0s     s1 open conn=1
			10ms   s1 phase phase=connected epoch=2
			9s     - closing
		`},
		{name: "connected to nothing", want: invariant.Violated, why: "no connection of it is open", story: `
			0s     s1 open conn=1
			0s     s1 answered conn=1 method=initialize
			0s     s1 answered conn=1 method=tools/list
			1s     s1 released conn=1
			2s     s1 phase phase=connected epoch=2
			9s     - closing
		`},
		{name: "connected to a dead process", want: invariant.Violated, why: "Connection 1 of s1 ended at 1s. The manager had to notice it within 1.5s, by 2.5s", story: up + `
			1s     s1 down conn=1 class=exited
			9s     - closing
		`},
		{name: "a process that died while it was stopped is seen when it goes on", want: invariant.Holds, story: up + `
			1s     s1 fault-on fault=1 name=stop
			2s     s1 down conn=1 class=exited
			7s     s1 fault-off fault=1 name=stop
			8s     s1 phase phase=pending step=restarting epoch=2 class=exited
			99s    - closing
		`},
		{name: "a process that died while it was stopped is connected long after", want: invariant.Violated, why: "Connection 1 of s1 ended at 2s", story: up + `
			1s     s1 fault-on fault=1 name=stop
			2s     s1 down conn=1 class=exited
			7s     s1 fault-off fault=1 name=stop
			30s    - closing
		`},
		{name: "connected to a remote server that is gone", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "within 45s",
			story: up + `
			1s     s1 down conn=1 class=network
			99s    - closing
		`},
		{name: "a remote server answers the handshake long after it was restarted, as on seed 30306432", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: `
			0s     s1 phase phase=pending step=queued epoch=1
			0s     s1 phase phase=pending step=dialing epoch=2
			0s     s1 open conn=1
			0s     s1 phase phase=pending step=handshaking epoch=2
			1s     s1 down conn=1 class=network
			60s    s1 answered conn=1 method=initialize
			60s    s1 phase phase=pending step=listing epoch=2
			60s    s1 answered conn=1 method=tools/list
			60s    s1 listed conn=1
			60s    s1 phase phase=connected epoch=2
			99s    - closing
		`},
		{name: "a remote server's silence is noticed", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			1s     s1 down conn=1 class=network
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			99s    - closing
		`},
		{name: "a remote server is given up too early", servers: []string{"s1 kind=http"}, want: invariant.Violated,
			why: "given up at 45s because the server was silent, and it was that only since 20s. It may be silent for 30s", story: up + `
			20s    s1 answered conn=1 method=ping id=7
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			99s    - closing
		`},
		{name: "a remote server is given up whose answer came as its call was given up, as on seed 30308563", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			10s    s1 call call=c1 tool=read
			10s    s1 received conn=1 method=tools/call call=c1 id=7
			20s    s1 left call=c1 tool=read
			20s    s1 answered conn=1 method=tools/call call=c1 id=7
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			99s    - closing
		`},
		// Seed 20801235: the server went on to tell of the progress of a call, and nothing of that arrived.
		{name: "a remote server is given up whose words are lost", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			5s     s1 fault-on fault=1 name=black-hole
			20s    s1 notified conn=1 method=notifications/progress
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			60s    s1 fault-off fault=1 name=black-hole
			99s    - closing
		`},
		// Seed 30326460: the server announced a change 50 ms after the stream for announcements had broken.
		{name: "a remote server is given up whose stream was cut before its words", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			5s     s1 answered conn=1 method=ping id=6
			18s    s1 fault-on fault=1 name=cut-stream
			19.9s  s1 fired conn=1 fault=1 name=cut-stream
			20s    s1 notified conn=1 method=notifications/tools/list_changed
			25s    s1 fault-off fault=1 name=cut-stream
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			99s    - closing
		`},
		// Seed 20850429: the credentials of a call were asked for while three pings found no answer.
		{name: "a remote server is given up that wants other credentials", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			5s     s1 answered conn=1 method=ping id=6
			20s    s1 answered conn=1 method=tools/call id=7 code=401
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			99s    - closing
		`},
		// Seed 20870390: one answer came, as another type than JSON.
		{name: "a remote server is given up whose answer cannot be read", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			5s     s1 answered conn=1 method=ping id=6
			19s    s1 fault-on fault=1 name=wrong-content-type
			20s    s1 answered conn=1 method=tools/list id=7
			20s    s1 listed conn=1
			20s    s1 fired conn=1 fault=1 name=wrong-content-type
			21s    s1 fault-off fault=1 name=wrong-content-type
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			99s    - closing
		`},
		{name: "a remote server is given up after three pings", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			15s    s1 answered conn=1 method=ping id=7
			45s    s1 phase phase=pending step=restarting epoch=2 class=timeout
			99s    - closing
		`},
		{name: "the silence of a remote server is not noticed", servers: []string{"s1 kind=websocket"}, want: invariant.Violated,
			why: "was silent from 5s to 1m39s", story: up + `
			5s     s1 answered conn=1 method=ping
			15s    s1 received conn=1 method=ping
			99s    - closing
		`},
		{name: "a remote server says something now and then", servers: []string{"s1 kind=websocket"}, want: invariant.Holds, story: up + `
			30s    s1 notified conn=1 method=notifications/message
			70s    s1 notified conn=1 method=notifications/message
			99s    - closing
		`},
		{name: "a remote server asks now and then", servers: []string{"s1 kind=websocket"}, want: invariant.Holds, story: up + `
			30s    s1 inquiry conn=1 method=roots/list id=ask-1 call=one
			70s    s1 inquiry conn=1 method=roots/list id=ask-2 call=one
			99s    - closing
		`},
		{name: "a child may be silent for as long as it likes", want: invariant.Holds, story: up + `
			999s   - closing
		`},
		{name: "a refused token is called a failure", want: invariant.Violated, why: "instead of needs-auth", story: up + `
			1s     s1 phase phase=pending step=restarting epoch=2 class=unauthorized
			99s    - closing
		`},
		{name: "a server of HTTP was started again and goes on", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: up + `
			1s     s1 down conn=1 class=network
			15s    s1 answered conn=1 method=server/discover
			50s    - closing
		`},
		{name: "a server of HTTP was started again and tells what was subscribed to", servers: []string{"s1 kind=http"}, want: invariant.Holds,
			story: up + `
			1s     s1 down conn=1 class=network
			2s     s1 notified conn=1 method=notifications/subscriptions/acknowledged
			46.5s  s1 phase phase=pending step=restarting epoch=2 class=timeout
			50s    - closing
		`},
		{name: "a server of HTTP was started again and says nothing more", servers: []string{"s1 kind=http"}, want: invariant.Violated,
			why: "was silent from 2s to 50s", story: up + `
			1s     s1 down conn=1 class=network
			2s     s1 notified conn=1 method=notifications/subscriptions/acknowledged
			50s    - closing
		`},
	})
}
