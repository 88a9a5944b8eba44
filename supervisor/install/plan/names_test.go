package plan_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

var update = flag.Bool("update", false, "rewrite what the stories in testdata want")

func TestParseRef(t *testing.T) {
	for text, want := range map[string]plan.Ref{
		"io.github.o/s":              {Name: "io.github.o/s"},
		"io.github.o/s@1.2.3":        {Name: "io.github.o/s", Version: "1.2.3"},
		"io.github.o/s@latest":       {Name: "io.github.o/s"},
		"github":                     {Name: "github"},
		"github@2.0.0-beta+20130313": {Name: "github", Version: "2.0.0-beta+20130313"},
	} {
		if got, err := plan.ParseRef(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "@1", "a/b/c", "a/", "/b", "-x", "a b", "a@", "a@1 2", "a@1/2", "a@../x", "é", "a@1@2",
		strings.Repeat("a", 201), "a/b@\x1b[31m"} {
		if got, err := plan.ParseRef(text); !errors.Is(err, plan.ErrName) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestLocalName(t *testing.T) {
	for full, want := range map[string]string{
		"io.github.github/github-mcp-server":    "github",
		"io.github.domdomegg/time-mcp-pypi":     "time-mcp-pypi",
		"com.notion/mcp":                        "notion",
		"com.example/mcp-server":                "example",
		"io.github.o/server-filesystem":         "filesystem",
		"io.github.o/mcp-server-git":            "git",
		"io.github.o/my_weather.server":         "my-weather-server",
		"io.github.o/a__b":                      "a-b",
		"io.github.o/GitHub-MCP":                "GitHub",
		"mcp/mcp":                               "mcp",
		"io.github.o/---":                       "o",
		"io.github.o/mcp-server-mcp-server-x-1": "x-1",
	} {
		if got := plan.LocalName(full); got != want {
			t.Errorf("%s: %q, not %q", full, got, want)
		}
	}
}

// TestAShortNameIsUniqueOrAmbiguous: a publisher who takes the bare word does not get what was meant for a better-known
// server whose name has more in it.
func TestAShortNameIsUniqueOrAmbiguous(t *testing.T) {
	all := []string{"io.github.github/github-mcp-server", "io.github.evil/github", "com.example/gitlab", "io.github.x/not-gitlab-at-all"}
	for _, c := range []struct{ short, want, text string }{
		{"gitlab", "com.example/gitlab", ""},
		{"GitLab", "com.example/gitlab", ""},
		{"github", "", "several servers are called github: io.github.evil/github, io.github.github/github-mcp-server; write the whole name"},
		{"not-gitlab", "", "no server is called not-gitlab; near it: "},
	} {
		got, err := plan.Unique(c.short, all, true)
		if got != c.want || (err == nil) != (c.text == "") || err != nil && !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%s: %q, %v", c.short, got, err)
		}
	}
	if _, err := plan.Unique("gitlab", all, false); !errors.Is(err, plan.ErrName) || !strings.Contains(err.Error(), "too many") {
		t.Errorf("of more names than were seen: %v", err)
	}
	if _, err := plan.Unique("x", nil, true); !errors.Is(err, plan.ErrName) {
		t.Error(err)
	}
	if got, err := plan.Unique("gitlab", append(all, "com.example/gitlab"), true); err != nil || got != "com.example/gitlab" {
		t.Errorf("a name that stands twice: %q, %v", got, err)
	}
}
