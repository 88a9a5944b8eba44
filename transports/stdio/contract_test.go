package stdio_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func TestStdioContract(t *testing.T) {
	seeds.Shows(t, "000.2.type-stdio", "001.3.stdio", "001.3.framing", "003.5.transport-layer", "004.t.json-rpc",
		"004.t.stdio")
	stdioContract(t, nil)
}

// stdioContract runs the suite against children that are isolated so.
func stdioContract(t *testing.T, isolated *messages.Isolation) {
	secretive := func(o transporttest.Options, role string) stdio.Config {
		cfg := secretConfig(o, role)
		cfg.Isolation = isolated
		return cfg
	}
	type options = transporttest.Options
	broken := map[string]func(*testing.T, options) (transports.Transport, messages.Class){
		"missing command": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = "no-such-command-of-mcpvisor"
			return stdio.New(cfg), messages.ClassMissing
		},
		"missing path": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = filepath.Join(t.TempDir(), "nothing")
			return stdio.New(cfg), messages.ClassMissing
		},
		"arguments in the command": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = "npx server --token " + o.Secret
			return stdio.New(cfg), messages.ClassMissing
		},
		"no command": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = ""
			return stdio.New(cfg), messages.ClassConfig
		},
		"a directory": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = t.TempDir()
			return stdio.New(cfg), messages.ClassConfig
		},
		"missing directory": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Dir = filepath.Join(t.TempDir(), "nothing")
			return stdio.New(cfg), messages.ClassConfig
		},
		"directory is a file": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Dir = os.Args[0]
			return stdio.New(cfg), messages.ClassConfig
		},
		"zero byte in a value": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Env = append(cfg.Env, "X="+o.Secret+"\x00")
			return stdio.New(cfg), messages.ClassConfig
		},
		"a variable without a name": func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Env = append(cfg.Env, o.Secret)
			return stdio.New(cfg), messages.ClassConfig
		},
	}
	if runtime.GOOS != "windows" {
		broken["not executable"] = func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = file(t, "server", "#!/bin/sh\n", 0o644)
			return stdio.New(cfg), messages.ClassConfig
		}
		broken["missing interpreter"] = func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = file(t, "server", "#!/no/such/interpreter\n", 0o755)
			return stdio.New(cfg), messages.ClassMissing
		}
		broken["no program"] = func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			cfg.Command = file(t, "server", "\x00\x01\x02 no format", 0o755)
			return stdio.New(cfg), messages.ClassConfig
		}
		broken["arguments too long"] = func(t *testing.T, o options) (transports.Transport, messages.Class) {
			cfg := secretive(o, "script")
			for range 400 {
				cfg.Args = append(cfg.Args, string(make128K()))
			}
			return stdio.New(cfg), messages.ClassConfig
		}
	}
	if isolated != nil {
		delete(broken, "arguments too long")
	}
	transporttest.Run(t, transporttest.Harness{
		New: func(t *testing.T, o options) transports.Transport {
			return stdio.New(secretive(o, "script"))
		},
		Broken: broken,
		Features: transporttest.Features{
			OneStream: true, DeathIsDown: true, Push: true, Noise: true, PID: true,
			Stall: isolated == nil, // a full pipe is the same pipe, and takes seconds
		},
	})
}

// secretConfig is a configuration with the secret in every place that can hold one.
func secretConfig(o transporttest.Options, role string) stdio.Config {
	cfg := asRole(role, "PEER_TOKEN="+o.Secret, "DATABASE_URL=postgres://user:"+o.Secret+"@localhost/db")
	cfg.MaxMessage = o.MaxMessage
	cfg.Args = []string{"--api-key", o.Secret}
	cfg.Secrets = []string{"postgres://user:" + o.Secret + "@localhost/db"}
	return cfg
}

func file(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func make128K() []byte {
	b := make([]byte, 100<<10)
	for i := range b {
		b[i] = 'a'
	}
	return b
}
