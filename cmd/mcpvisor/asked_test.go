package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// The tests below play one story each for the commands, as short as the first requirements of the project describe them. The
// stories of testdata/script go further. seeds.Shows ties each to the requirements that it shows.

func TestAToolIsCalledByEitherName(t *testing.T) {
	seeds.Shows(t, "002.2.invoke-by-prefix", "004.fr7.display", "004.fr7.ac-short-names", "004.fr7.ac-full-names")
	asked(t, "call.txtar")
}

func TestATableListsTheServers(t *testing.T) {
	seeds.Shows(t, "002.7.list")
	asked(t, "list.txtar")
}

func TestServersAreShownAndManaged(t *testing.T) {
	seeds.Shows(t, "002.6.command")
	asked(t, "manage.txtar")
}

func TestServersAreConfiguredWithALine(t *testing.T) {
	seeds.Shows(t, "002.4.load-config", "004.g.easy-config", "004.fr2.project-source", "004.fr2.user-source",
		"004.fr2.flag-source", "004.fr2.ac-cli-override", "004.fr2.ac-invalid", "004.fr2.ac-multiple")
	asked(t, "configure.txtar")
}

func TestServersAreAddedByCommand(t *testing.T) {
	seeds.Shows(t, "002.2.add-by-name", "002.2.add-env", "002.7.add-shows-tools", "002.11.management-command")
	asked(t, "add.txtar")
}

// asked runs one script of testdata/asked.
func asked(t *testing.T, file string) {
	t.Helper()
	vars := serveScripts(t)
	testscript.Run(t, testscript.Params{
		Files:               []string{filepath.Join("testdata", "asked", file)},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, vars...)
			return setUpScript(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": scriptExits, "gone": scriptGone, "running": scriptRunning,
		},
	})
}
