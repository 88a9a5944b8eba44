package lifecycle_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
)

// A shell keeps one State, gives each event to Step and performs the effects in their order. Here a server is started,
// connects and is disabled while it is connected: its tools are withdrawn, its connection is kept.
func ExampleStep() {
	var state lifecycle.State
	for _, event := range []lifecycle.Event{
		lifecycle.Init{Enabled: true, Ticket: 1},
		lifecycle.Granted{Epoch: 42},
		lifecycle.Dialed{Epoch: 42},
		lifecycle.Greeted{Epoch: 42},
		lifecycle.Dialed{Epoch: 41}, // late, of an older attempt
		lifecycle.Listed{Epoch: 42},
		lifecycle.Disable{},
	} {
		var effects []lifecycle.Effect
		state, effects = lifecycle.Step(state, event)
		fmt.Printf("%T → %s %s, connection %v\n", event, state.Phase, state.Step, state.Conn)
		for _, effect := range effects {
			fmt.Printf("    %T%+v\n", effect, effect)
		}
		if err := state.Check(); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("warm:", state.Warm(), "- ticket answered:", state.Answered)

	// Output:
	// lifecycle.Init → pending queued, connection none
	//     lifecycle.Ask{Urgency:normal Fresh:true}
	// lifecycle.Granted → pending dialing, connection opening
	//     lifecycle.Dial{Epoch:42}
	// lifecycle.Dialed → pending handshaking, connection opening
	//     lifecycle.Greet{Epoch:42}
	// lifecycle.Greeted → pending listing, connection opening
	//     lifecycle.Answer{Epoch:42}
	//     lifecycle.List{Epoch:42 First:true}
	// lifecycle.Dialed → pending listing, connection opening
	// lifecycle.Listed → connected , connection open
	//     lifecycle.Up{Epoch:42}
	//     lifecycle.Show{Epoch:42 Rev:1}
	// lifecycle.Disable → disabled , connection open
	//     lifecycle.Withdraw{Epoch:42 Rev:2}
	// warm: true - ticket answered: 1
}
