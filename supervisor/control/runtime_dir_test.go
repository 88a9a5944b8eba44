package control

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// An agent that hands on few variables has the same directory as a terminal, in which XDG_RUNTIME_DIR is set.
func TestTheRuntimeDirectoryIsFoundWithoutItsVariable(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no such directory, and no modes
	}
	perUser := filepath.Join(t.TempDir(), "1000")
	for _, c := range []struct {
		name, value, want string
		mode              os.FileMode
	}{
		{name: "the variable wins", value: "/run/x", mode: 0o700, want: "/run/x/mcpvisor"},
		{name: "the variable is not set", mode: 0o700, want: perUser + "/mcpvisor"},
		{name: "the variable is relative", value: "run", mode: 0o700, want: perUser + "/mcpvisor"},
		{name: "others may write there", mode: 0o777},
		{name: "there is no such directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.RemoveAll(perUser); err != nil {
				t.Fatal(err)
			}
			if c.mode != 0 {
				if err := os.Mkdir(perUser, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(perUser, c.mode); err != nil {
					t.Fatal(err)
				}
			}
			got, err := runtimeDir(c.value, perUser)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("the directory is %q, %v; it should be %q", got, err, c.want)
			}
		})
	}
}
