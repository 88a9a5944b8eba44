//go:build !nochaos

package main

// fullBuild says that this build has the commands of chaos.
const fullBuild = true
