package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// TestTheCommandsOnServerEverything plays the commands on the reference server of the protocol:
// testdata/peers/everything.txtar.
func TestTheCommandsOnServerEverything(t *testing.T) {
	command, args := peers.NPM(t).Command(peers.Everything)
	onPeer(t, "everything.txtar", append([]string{command}, args...))
}

func TestTheCommandsOnTheSDKsServer(t *testing.T) { onPeer(t, "gosdk.txtar", []string{peers.Go(t)}) }

// TestAddOnAServerOfNPM adds a server of npm as a person does, by its command alone.
func TestAddOnAServerOfNPM(t *testing.T) {
	seeds.Shows(t, "002.11.management-command")
	command, args := peers.NPM(t).Command(peers.Everything)
	onPeer(t, "add.txtar", append([]string{command}, args...))
}

// onPeer runs a script with a c.json in its directory that has the server under the name "all".
func onPeer(t *testing.T, file string, command []string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"all": map[string]any{"command": command[0], "args": command[1:]},
	}})
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{filepath.Join("testdata", "peers", file)},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			if err := setUpScript(env); err != nil {
				return err
			}
			env.Vars = append(env.Vars, "SERVER="+command[0], "SCRIPT="+strings.Join(command[1:], " "))
			return os.WriteFile(filepath.Join(env.Cd, "c.json"), text, 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": scriptExits, "gone": scriptGone},
	})
}
