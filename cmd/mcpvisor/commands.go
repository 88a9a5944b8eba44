package main

import "github.com/spf13/cobra"

// commands are the commands of the program, each in a file of its own.
var commands = []func(*options) *cobra.Command{
	newList, newTools, newCall, newWhy, newReconnect, newEnable, newDisable, newApprove, newConfig, newVersion,
	newUp, newGuardian, newDemoServer,
}
