package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent starts connect without HOME, or with an XDG_RUNTIME_DIR that cannot be made: the refusal says which variable to set. For the second
// it once gave the error of the system alone.
func TestConnectSaysWhichVariableIsMissing(t *testing.T) {
	t.Parallel()
	const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"test","version":"1"}}}` + "\n"
	home := t.TempDir()
	file := filepath.Join(home, "file") // no directory can be made below it
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"no HOME": {[]string{"XDG_RUNTIME_DIR=" + home}, "there is no directory for the log of the daemon: $HOME is not defined; set HOME, or XDG_STATE_HOME."},
		"no runtime directory": {[]string{"HOME=" + home, "XDG_RUNTIME_DIR=" + file},
			"the directory " + file + "/mcpvisor for the socket of the daemon cannot be used: not a directory; set XDG_RUNTIME_DIR to a directory of yours."},
		"no directory at all": {[]string{"HOME=" + file, "XDG_RUNTIME_DIR=", "XDG_CACHE_HOME=" + file + "/cache"}, "; set HOME or XDG_RUNTIME_DIR to a directory of yours."},
	} {
		cmd := newPlace(t, "").command("connect")
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.env...)
		cmd.Stdin = strings.NewReader(handshake)
		out, err := cmd.Output()
		if name == "no directory at all" && !strings.Contains(string(out), "error") {
			continue // systemd has made one for this user
		}
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
