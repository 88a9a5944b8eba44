//go:build !linux

package audit_test

// appendLimited is called for by TestMain on every system; the test that starts such a process is in full_linux_test.go.
func appendLimited(string) int { return 1 }
