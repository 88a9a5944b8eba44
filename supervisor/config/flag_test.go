package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func stdio(command string, args ...string) messages.Spec {
	return messages.Spec{Type: messages.Stdio, Command: command, Args: args}
}

func TestParseFlag(t *testing.T) {
	seeds.Shows(t, "004.fr2.flag-source")
	for in, want := range map[string]messages.Spec{
		"gh=https://example.com?a=b":             {Type: messages.HTTP, URL: "https://example.com?a=b", FallbackSSE: true},
		"ws=wss://example.com":                   {Type: messages.WebSocket, URL: "wss://example.com"},
		"v=https://${HOST}/mcp":                  {Type: messages.HTTP, URL: "https://${HOST}/mcp", FallbackSSE: true},
		"fs=npx -y server-filesystem .":          stdio("npx", "-y", "server-filesystem", "."),
		"one= server ":                           stdio("server"),
		"q=sh -c 'echo \"a b\"' \"c 'd'\" e\\ f": stdio("sh", "-c", `echo "a b"`, "c 'd'", "e f"),
		`w=C:\tools\server.exe --dir C:\data\x`:  stdio(`C:\tools\server.exe`, "--dir", `C:\data\x`),
		`e=x "" '' a""b \"`:                      stdio("x", "", "", "ab", `"`),
		"h=x --color=#fff # y":                   stdio("x", "--color=#fff", "#", "y"),
		`j={"command": "x", "args": ["y z"], "timeout": "3s"}`: {Type: messages.Stdio, Command: "x",
			Args: []string{"y z"}, CallTimeout: 3e9},
		`k={"url": "https://example.com", /* c */ "trusted": true,}`: {Type: messages.HTTP, URL: "https://example.com",
			FallbackSSE: true, Trusted: true},
	} {
		name, e, err := config.ParseFlag(in)
		if err != nil || name != in[:strings.IndexByte(in, '=')] || e.Name != name {
			t.Errorf("%s: name %q, error %v", in, name, err)
		}
		if !e.Spec.Equal(want) || e.Spec.Scope != messages.ScopeDynamic {
			t.Errorf("%s:\ngot  %+v\nwant %+v", in, e.Spec, want)
		}
	}
}

func TestParseFlagErrors(t *testing.T) {
	const forms = `; write NAME=URL, NAME="COMMAND ARGS…" or NAME={json}`
	const gh = `--mcp-server: server "gh": `
	for in, want := range map[string]string{
		"":                             `--mcp-server: there is no = in the value` + forms,
		"npx":                          `--mcp-server: there is no = in the value` + forms,
		"https://h/?key=secret":        `--mcp-server: there is no name before the server` + forms,
		"npx -y server --token=secret": `--mcp-server: there is no name before the server` + forms,
		`{"a":"="}`:                    `--mcp-server: there is no name before the server` + forms,
		"=npx":                         `--mcp-server: a server has an empty name` + forms,
		"a\x1b=npx":                    `--mcp-server: its name holds characters that cannot be shown` + forms,
		"gh=":                          gh + `nothing follows the =` + forms,
		"gh=  ":                        gh + `nothing follows the =` + forms,
		`gh=npx "secret`:               gh + `a quote is not closed; close it, or escape it with a backslash`,
		"gh=https://h/ secret":         gh + `something follows the URL; to add headers, write the server as NAME={json}`,
		"gh=''":                        gh + `command: it is empty; name the program to start`,
		`gh={"command": secret}`:       `--mcp-server:1:13: server "gh": this is no JSON value; text stands in double quotes`,
		`gh={"command": 1, "args": 2}`: `--mcp-server:1:13: server "gh": command: found a number instead of text` + "\n" +
			`--mcp-server:1:24: server "gh": args: found a number instead of a list; write ["--flag", "value"]`,
		`gh={}`: gh + `it has neither command nor url; ` +
			`add "command" for a program, or "url" for a remote server`,
		`gh={"comand": "x"}`: gh + `it has neither command nor url; rename comand to command`,
	} {
		_, _, err := config.ParseFlag(in)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", in, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells a secret: %v", in, err)
		}
	}
}

// The flags stand above every file; of two files named on the command line the later wins, and a name given twice is a
// mistake.
func TestFlags(t *testing.T) {
	seeds.Shows(t, "004.fr2.ac-cli-override")
	flags, err := config.Flags([]string{"a=x ${A}", `b={"command": "y", "oops": 1}`})
	if err != nil {
		t.Fatal(err)
	}
	file := config.Parse(config.File{Path: "d.json", Scope: messages.ScopeDynamic,
		Data: []byte(`{"mcpServers": {"a": {"command": "file"}}}`)})
	lookup := func(string) (string, bool) { return "1", true }
	set := config.Merge([]config.Parsed{file, flags}, config.Context{Lookup: lookup})
	if got := set.Specs["a"]; got.Command != "x" || !slices.Equal(got.Args, []string{"1"}) {
		t.Errorf("a: %+v", got)
	}
	const oops = `--mcp-server:1:18: warning: server "b": oops: unknown key, ignored`
	if len(set.Problems) != 1 || set.Problems[0].Error() != oops {
		t.Errorf("problems: %v", set.Problems)
	}
	_, err = config.Flags([]string{"a=x", "oops", "a=y"})
	want := `--mcp-server: there is no = in the value; write NAME=URL, NAME="COMMAND ARGS…" or NAME={json}` + "\n" +
		`--mcp-server: server "a": it is given twice; remove one or give it another name`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
