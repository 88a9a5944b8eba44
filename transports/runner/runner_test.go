package runner_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/runner"
)

func TestOf(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y server":              "npx",
		"/usr/bin/npx -y server":     "npx",
		`C:\node\npx.cmd -y server`:  "npx",
		"cmd /c npx -y server":       "npx",
		"env A=b npx server":         "npx",
		"/usr/bin/env -S npx server": "npx",
		"bunx server":                "bunx",
		"bun x server":               "bun x",
		"pnpm dlx server":            "pnpm dlx",
		"pnpm --silent dlx server":   "pnpm dlx",
		"yarn dlx server":            "yarn dlx",
		"npm exec -- server":         "npm exec",
		"uvx server":                 "uvx",
		"uv tool run server":         "uv tool run",
		"uv run server.py":           "uv run",
		"pipx run server":            "pipx run",
		"docker run -i --rm image":   "docker run",
		"podman run -i image":        "podman run",
		"go run ./cmd/server":        "go run",
		"deno run -A jsr:server":     "deno run",
		"cargo run":                  "cargo run",
		"node server.js":             "",
		"npm start":                  "",
		"go build":                   "",
		"docker exec -i box server":  "",
		"uv pip install x":           "",
		"python -m server":           "",
		"npx-server":                 "",
		"bash -c npx":                "npx",
		"env":                        "",
		"env A=b":                    "",
		"sh -c":                      "",
		"docker":                     "",
	} {
		words := strings.Fields(command)
		if got := runner.NameOf(words[0], words[1:]); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := runner.NameOf("bash", []string{"-lc", "A=b exec npx -y server --flag"}); got != "npx" {
		t.Errorf("a shell's npx is %q", got)
	}
	if got := runner.NameOf("", nil); got != "" {
		t.Errorf("nothing is %q", got)
	}
}

func TestWaits(t *testing.T) {
	pull := "Unable to find image 'mcp/server:latest' locally\nlatest: Pulling from mcp/server\n"
	for _, c := range []struct {
		name, stderr string
		want         bool
	}{
		{"docker run", "", false},
		{"docker run", pull, true},
		{"docker run", pull + "Status: Downloaded newer image for mcp/server:latest\n", false},
		{"docker run", pull + "docker: Error response from daemon: denied.\n", false},
		{"podman run", "Trying to pull docker.io/mcp/server:latest...\nGetting image source signatures\n", true},
		{"podman run", "Trying to pull x...\nWriting manifest to image destination\n", false},
		{"npx", pull, false},
	} {
		if got := runner.FetchesImage(c.name, c.stderr); got != c.want {
			t.Errorf("%s, %q: %v", c.name, c.stderr, got)
		}
	}
}
