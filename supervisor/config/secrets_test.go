package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// Every field holds a canary, from the environment and as written, in every way that fails: no text that people or logs
// see may hold it.
func TestNoSecretInProblems(t *testing.T) {
	seeds.Shows(t, "002.9.credentials")
	const canary = "kanarienvogel"
	fields := []string{
		`"command": "%s"`, `"command": ["x", "%s", 7, {}]`, `"command": "x", "args": ["%s", []]`,
		`"command": "x", "env": {"A": "%s", "B": 7, "C": []}`, `"command": "x", "cwd": "%s"`, `"command": "x", "url": "%s"`,
		`"url": "%s"`, `"url": "https://%s@h/?k=%[1]s"`, `"url": "ftp://%s"`, `"url": "%s://host"`, `"url": " %s"`,
		`"url": "https://h", "headers": {"A": "%s", "a": "%[1]s"}`, `"url": "https://h", "headers": {"A": "%s\n"}`,
		`"url": "https://h", "headers": {"%s:": ""}`, `"url": "https://h", "headers": ["A: %s"]`,
		`"url": "https://h", "auth": {"apiKey": "%s\n"}`, `"url": "https://h", "auth": {"apiKey": "%s", "headerName": "a b"}`,
		`"url": "https://h", "auth": {"type": "oauth", "clientSecret": "%s"}`, `"url": "https://h", "auth": "%s"`,
		`"command": "x", "env": {"A=%s": ""}`, `"command": "x", "env": "A=%s"`, `"type": "http", "command": "%s"`,
		`"command": "x", "command": "%s"`, `"command": "x", "disabled": "%s"`, `"command": "x", "args": "%s"`,
		`"command": "x", "args": ["%s`, `"command": "x", "args": ["%s\q"]`, `"command": "x", "args": [%s]`,
		`"command": "x", "args": ["${NOPE}%s"]`, `"command": "x", "args": ["${%s"]`, `"command": "%s -y"`,
		`"command": "x", "args": ["%s${file:/x}"]`, `"command": "x", "args": ["${NOPE:-%s${ALSO}}"]`,
		`"httpUrl": "%s", "url": "x%[1]s"`,
		`"command": "x", "env": {"A": "%s\u0000"}`, `"command": "x", "args": ["%s\u0000"]`, `"command": "%s\u0000"`,
	}
	values := map[string]string{
		"A": canary, "SCHEME": canary + ":", "NUL": canary + "\x00", "BREAK": canary + "\r\n",
		"URL": "http://u:" + canary + "@h:x",
		"FTP": canary + "://host",
	}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for _, field := range fields {
		for _, value := range []string{
			canary, "${A}", "${SCHEME}", "${NUL}", "${BREAK}", "${URL}", "${FTP}", "${NOPE:-" + canary + "}",
		} {
			entry := "{" + fmt.Sprintf(field, value) + "}"
			data := []byte(`{"servers": {"s": ` + entry + `}}`)
			for _, allowed := range [][]messages.TransportKind{nil, {}} {
				p := config.Parse(config.File{Path: "f", Scope: messages.ScopeUser, Data: data})
				set := config.Merge([]config.Parsed{p}, config.Context{Lookup: lookup, AllowedTransports: allowed})
				for _, p := range set.Problems {
					if strings.Contains(p.Error(), canary) {
						t.Errorf("%s: %v", entry, p)
					}
				}
				if s := set.Specs["s"].Invalid; strings.Contains(s, canary) {
					t.Errorf("%s: %s", entry, s)
				}
			}
			for _, flag := range []string{"s=" + entry, value + " x=y", "s=https://" + value + " x", "s=" + value + ` "`} {
				if _, _, err := config.ParseFlag(flag); err != nil && strings.Contains(err.Error(), canary) {
					t.Errorf("%s: %v", flag, err)
				}
			}
		}
	}
}
