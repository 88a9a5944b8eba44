//go:build unix && !linux

package house

import "os"

// Seen is what can be seen here.
var Seen = Sight{Descriptors: true}

// descriptors counts the open files, without the one that counts them.
func descriptors() int {
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

func processes(string) []Process { return nil }

func arguments(int) string { return "" }
