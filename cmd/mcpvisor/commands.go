package main

import "github.com/spf13/cobra"

// commands lists the constructors of all commands of the program, in the groups and the order in which the help prints them.
// newRoot calls each constructor once for a run. The last group also gets cobra's "completion" command.
var commands = []struct {
	title    string
	commands []func(*options) *cobra.Command
}{
	{"Use servers:", []func(*options) *cobra.Command{
		newUp, newList, newTools, newCall, newResources, newRead, newPrompts, newPrompt, newComplete,
	}},
	{"Find out what is wrong:", []func(*options) *cobra.Command{newWhy, newPing, newLogs, newDoctor, newAudit}},
	{"Manage servers:", []func(*options) *cobra.Command{
		newInit, newAdd, newAddJSON, newGet, newRemove, newEnable, newDisable, newReconnect, newReload, newSearch, newImport,
	}},
	{"Decide who may do what:", []func(*options) *cobra.Command{newLogin, newLogout, newAuth, newApprove, newDiff, newPermissions}},
	{"More:", []func(*options) *cobra.Command{newConfig, newChaos, newVersion, newGuardian, newDemoServer}},
}
