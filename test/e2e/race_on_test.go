//go:build race

package e2e_test

// raceFactor is how much more memory the race detector may take.
const raceFactor = 6
