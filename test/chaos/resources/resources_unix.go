//go:build unix && !linux

package resources

import "os"

// Supported is what can be seen here.
var Supported = Capabilities{Descriptors: true}

// countDescriptors counts the open files, without the one that counts them.
func countDescriptors() int {
	d, err := os.Open("/dev/fd")
	if err != nil {
		return 0
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return len(names) - 1
}

func listProcesses(string) []Process { return nil }

func readArguments(int) string { return "" }
