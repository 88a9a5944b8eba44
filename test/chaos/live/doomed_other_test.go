//go:build !linux

package live_test

const doomed = "live-doomed"

func runDoomed() {}
