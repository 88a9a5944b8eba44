package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// TestReadsWakeServersThatRest has prompts and completions of a lazy server that rests.
func TestReadsWakeServersThatRest(t *testing.T) {
	const rests = `
		0s     s1 phase phase=connected epoch=1
		5s     s1 phase phase=pending step=idle epoch=1
		20s    s1 read call=r1 method=prompt
	`
	runCases(t, "I20", []storyCase{
		{name: "it is woken", want: invariant.Holds, story: rests + `
			20.1s  s1 phase phase=pending step=dialing epoch=2
			20.2s  s1 phase phase=connected epoch=2
			20.3s  s1 read-end call=r1 method=prompt
			100s   - closing
		`},
		{name: "it is woken and does not come", want: invariant.Holds, story: rests + `
			20.1s  s1 phase phase=pending step=dialing epoch=2
			20.2s  s1 phase phase=failed class=network epoch=2
			20.3s  s1 read-end call=r1 method=prompt class=network
			100s   - closing
		`},
		{name: "it is not woken", want: invariant.Violated, why: "The server s1 rested since 5s, and was asked for a prompt at 20s. The caller got an error at 20.3s (network)", story: rests + `
			20.3s  s1 read-end call=r1 method=prompt class=network
			100s   - closing
		`},
		{name: "its owner disables it", want: invariant.Inconclusive, why: "nothing was read", story: rests + `
			20.1s  s1 command command=1 method=disable
			20.2s  s1 done command=1 method=disable
			20.3s  s1 read-end call=r1 method=prompt class=network
			100s   - closing
		`},
	})
}
