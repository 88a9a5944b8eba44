package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestTheOwner(t *testing.T) {
	const up = `
		0s     s1 phase phase=pending step=queued epoch=1
		0s     s1 phase phase=pending step=dialing epoch=2
		20ms   s1 phase phase=connected epoch=2
	`
	const off = up + `
		1s     s1 command command=1 method=disable
		1s     s1 phase phase=disabled warm=true epoch=2
		1s     s1 done command=1 method=disable
	`
	const removed = up + `
		1s     s1 command command=1 method=remove
		1s     s1 phase phase=disabled epoch=2
		1s     s1 removed
		1s     s1 done command=1 method=remove
	`
	const over = `
		999s   - closing
	`
	set := func(p *scenario.Plan) {
		p.Commands = []scenario.PlannedCommand{{ID: 1, Do: "configure"}, {ID: 2, Do: "configure"}}
	}
	runCases(t, "I16", []storyCase{
		{name: "nothing was asked and nothing said", want: invariant.Inconclusive, why: "asked for nothing", story: `0s s2 open conn=1`},
		{name: "a day", want: invariant.Holds, story: off + `
			2s     s1 command command=2 method=enable
			2s     s1 phase phase=connected epoch=2
			2.01s  s1 done command=2 method=enable
			3s     s1 command command=3 method=reconnect
			3s     s1 phase phase=pending step=closing epoch=2
			4s     s1 phase phase=pending step=dialing epoch=3
			9s     s1 phase phase=failed epoch=3 class=network
			9s     s1 done command=3 method=reconnect class=network text=refused
			10s    - command command=4 method=configure
			10s    - done command=4 method=configure
		` + over},
		{name: "enable disables", want: invariant.Violated, why: "was wanted by its owner at 2", story: off + `
			2s     s1 command command=2 method=enable
			2s     s1 done command=2 method=enable
		` + over},
		{name: "disable leaves nothing said of it", want: invariant.Violated, why: "the manager says nothing of it", story: up + `
			1s     s1 command command=1 method=disable
			1s     s1 phase phase=disabled epoch=2
			1s     s1 removed
			1s     s1 done command=1 method=disable
		` + over},
		{name: "enable of what was removed is no wish", want: invariant.Holds, story: removed + `
			2s     s1 command command=2 method=enable
			2s     s1 done command=2 method=enable class=invalid text=no_such_server_is_configured
		` + over},
		{name: "add is never answered and nothing happens", want: invariant.Violated, why: "the manager says nothing of it", story: removed + `
			2s     s1 command command=2 method=add
		` + over},
		{name: "add is never answered and the server is connected", want: invariant.Violated, why: "The owner asked for add of s1 at 2s, and that has no answer, and the server is connected",
			story: removed + `
			2s     s1 command command=2 method=add
			2s     s1 phase phase=pending step=queued epoch=3
			3s     s1 phase phase=connected epoch=4
		` + over},
		{name: "a wedged server is added again when the one before has ended", want: invariant.Holds, story: up + `
			1s     s1 command command=1 method=remove
			1s     s1 phase phase=disabled epoch=2
			1s     s1 done command=1 method=remove
			1.5s   s1 command command=2 method=add
			1.6s   s1 command command=3 method=disable
			10s    s1 removed
			10s    s1 phase phase=pending step=queued epoch=3
			10s    s1 phase phase=disabled epoch=3
			10s    s1 done command=3 method=disable
			10s    s1 done command=2 method=add
		` + over},
		{name: "disable is answered late", want: invariant.Violated, why: "it waits for no server", story: up + `
			1s     s1 command command=1 method=disable
			1s     s1 phase phase=disabled warm=true epoch=2
			4s     s1 done command=1 method=disable
		` + over},
		{name: "disable is never answered", want: invariant.Violated, why: "The owner asked for disable of s1 at 1s, and that has no answer", story: up + `
			1s     s1 command command=1 method=disable
			1s     s1 phase phase=disabled warm=true epoch=2
		` + over},
		{name: "the set is never answered", want: invariant.Violated, why: "The owner asked for configure at 1s, and that has no answer", story: up + `
			1s     - command command=1 method=configure
		` + over},
		{name: "the set is refused", want: invariant.Violated, why: "nothing stood against it", story: up + `
			1s     - command command=1 method=configure
			1s     - done command=1 method=configure class=invalid text=no
		` + over},
		{name: "the first set is refused", want: invariant.Violated, why: "The first set of servers was refused", story: up + `
			0s     - done method=set class=invalid text=no
		` + over},
		{name: "another set removes it and adds it", plan: set, want: invariant.Holds, story: up + `
			1s     s1 command command=1 method=remove
			1s     s1 phase phase=disabled epoch=2
			1s     s1 done command=1 method=remove
			1.5s   s1 command command=2 method=add
			1.5s   s1 done command=2 method=add
			5s     s1 removed
			5s     s1 phase phase=pending step=queued epoch=3
			6s     s1 phase phase=failed epoch=3 class=network
		` + over},
		{name: "a reason that is none", want: invariant.Violated, why: "though by the commands before it nothing stands against it", story: up + `
			1s     s1 command command=1 method=reconnect
			1s     s1 done command=1 method=reconnect class=invalid text=it_is_disabled
		` + over},
		{name: "what is disabled is not reconnected", want: invariant.Holds, story: off + `
			2s     s1 command command=2 method=reconnect
			2s     s1 done command=2 method=reconnect class=invalid text=it_is_disabled
		` + over},
		{name: "reconnect of what is disabled is not refused", want: invariant.Violated, why: "had to be refused", story: off + `
			2s     s1 command command=2 method=reconnect
			2s     s1 done command=2 method=reconnect
		` + over},
		{name: "what was removed is removed again", want: invariant.Violated, why: "there is no such server", story: removed + `
			2s     s1 command command=2 method=remove
			2s     s1 done command=2 method=remove
		` + over},
		{name: "removed before the answer", want: invariant.Holds, story: off + `
			2s     s1 command command=2 method=enable
			2s     s1 command command=3 method=remove
			2s     s1 phase phase=disabled epoch=2
			2s     s1 removed
			2s     s1 done command=2 method=enable class=invalid text=no_such_server_is_configured
			2s     s1 done command=3 method=remove
		` + over},
		{name: "reconnect is answered late", want: invariant.Violated, why: "had to be answered by", story: up + `
			3s     s1 command command=3 method=reconnect
			3s     s1 phase phase=pending step=dialing epoch=3
			4s     s1 phase phase=failed class=network text=refused epoch=3
			9s     s1 done command=3 method=reconnect class=network text=refused
			20s    - closing
		`},
		{name: "the end of a renewal is seen late", want: invariant.Holds, story: up + `
			3s     s1 command command=1048577 method=reconnect
			3s     s1 phase phase=pending step=dialing epoch=3
			4s     s1 phase phase=failed class=network text=refused epoch=3
			9s     s1 done command=1048577 method=reconnect class=network text=refused
			20s    - closing
		`},
		{name: "reconnect is answered before the attempt has ended", want: invariant.Violated, why: "neither connected nor at rest", story: up + `
			3s     s1 command command=3 method=reconnect
			3s     s1 phase phase=pending step=closing epoch=2
			4s     s1 phase phase=pending step=dialing epoch=3
			5s     s1 done command=3 method=reconnect
			9s     s1 phase phase=failed epoch=3 class=network
		` + over},
		{name: "reconnect is said to have failed", want: invariant.Violated, why: "published as failed at no time", story: up + `
			3s     s1 command command=3 method=reconnect
			3s     s1 phase phase=pending step=closing epoch=2
			4s     s1 phase phase=pending step=dialing epoch=3
			5s     s1 phase phase=connected epoch=3
			5s     s1 done command=3 method=reconnect class=network text=refused
		` + over},
		{name: "disable fails", want: invariant.Violated, why: "it can always be done", story: up + `
			1s     s1 command command=1 method=disable
			1s     s1 phase phase=disabled warm=true epoch=2
			1s     s1 done command=1 method=disable class=network text=broken
		` + over},
		{name: "an attempt has no end", want: invariant.Violated, why: "the server was pending (", story: up + `
			1s     s1 command command=1 method=reconnect
			1s     s1 phase phase=pending step=queued epoch=2
		` + over},
		{name: "a dial that does not return holds what comes after it", want: invariant.Holds, story: off + `
			2s     s1 fault-on fault=1 name=stuck-dial
			2s     s1 command command=2 method=remove
			2s     s1 done command=2 method=remove
			3s     s1 command command=3 method=add
			700s   s1 fault-off fault=1 name=stuck-dial
			701s   s1 removed
			701s   s1 phase phase=pending step=queued epoch=3
			703s   s1 phase phase=connected epoch=4
			703s   s1 done command=3 method=add
		` + over},
		{name: "a dial that does not return for one fault, and then for another", want: invariant.Holds, story: off + `
			2s     s1 fault-on fault=1 name=stuck-dial
			2s     s1 open conn=7
			2s     s1 fault-on fault=2 name=black-hole
			2s     s1 command command=2 method=remove
			2s     s1 done command=2 method=remove
			3s     s1 command command=3 method=add
			4s     s1 fault-off fault=1 name=stuck-dial
			700s   s1 opened conn=7
			700s   s1 fault-off fault=2 name=black-hole
			701s   s1 removed
			701s   s1 phase phase=pending step=queued epoch=3
			703s   s1 phase phase=connected epoch=4
			703s   s1 done command=3 method=add
		` + over},
		{name: "a dial that returned long before", want: invariant.Violated, why: "", story: off + `
			2s     s1 fault-on fault=1 name=stuck-dial
			2s     s1 open conn=7
			2s     s1 command command=2 method=remove
			2s     s1 done command=2 method=remove
			3s     s1 command command=3 method=add
			4s     s1 opened conn=7
			4s     s1 fault-off fault=1 name=stuck-dial
			701s   s1 removed
			701s   s1 phase phase=pending step=queued epoch=3
			703s   s1 phase phase=connected epoch=4
			703s   s1 done command=3 method=add
		` + over},
		{name: "who waits for a server waits for its list", want: invariant.Holds, story: up + `
			1s     s1 command command=1 method=refresh
			2s     s1 command command=2 method=enable
			30s    s1 done command=1 method=refresh
			30s    s1 done command=2 method=enable
		` + over},
		{name: "no answer when the manager closes", want: invariant.Holds, story: up + `
			1s     s1 command command=1 method=reconnect
			1s     s1 phase phase=pending step=dialing epoch=2
			5s     - closing
			6s     s1 done command=1 method=reconnect class=canceled text=closed
		`},
	})
}
