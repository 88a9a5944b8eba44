//go:build !linux

package live_test

const doomedArgument = "live-doomed"

func runDoomed() {}
