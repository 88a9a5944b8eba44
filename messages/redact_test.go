package messages_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func ExampleSpec_Redacted() {
	s := messages.Spec{
		Command: "npx", Args: []string{"-y", "mcp-remote", "https://u:p@h.example/mcp?key=s3", "--header",
			"Authorization: Bearer s3"},
		Env: map[string]string{"TOKEN": "s3"},
	}.Redacted()
	fmt.Println(s.Args)
	fmt.Println(s.Env)
	// Output:
	// [-y mcp-remote https://redacted@h.example/mcp?key=redacted --header [redacted]]
	// map[TOKEN:[redacted]]
}

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                                                 "",
		"https://h.example/mcp":                            "https://h.example/mcp",
		"https://auth.example:8443/mcp":                    "https://auth.example:8443/mcp",
		"https://u:p@h.example/mcp":                        "https://redacted@h.example/mcp",
		"https://p@h.example":                              "https://redacted@h.example",
		"https://h.example/?b=1&a=2":                       "https://h.example/?b=redacted&a=redacted",
		"https://h.example/?secret":                        "https://h.example/?redacted",
		"https://h.example/?c2VjcmV0==":                    "https://h.example/?redacted",
		"https://h.example/?a=1;b=2":                       "https://h.example/?a=redacted&b=redacted",
		"https://h.example/#t=1":                           "https://h.example/#redacted",
		"https://h.example/s/Zm9vYmFyQmF6UXV4MTIzNDU2/mcp": "https://h.example/s/redacted/mcp",
		"https://h.example/3f2504e0-4f89-11d3-9a0c-0305e82c3301/mcp": "https://h.example/redacted/mcp",
		"https://h.example/a%2Fb/mcp":                                "https://h.example/a%2Fb/mcp",
		"u:p@h.example/mcp":                                          "[redacted]",
		"https://h.example/@owner/server":                            "https://h.example/@owner/server",
		"https://p/w@h.example/mcp":                                  "[redacted]",
		"http://[::1/?x":                                             "[redacted]",
		"not a url":                                                  "not a url",
		"${URL}":                                                     "${URL}",
	} {
		if got := messages.RedactURL(in); got != want {
			t.Errorf("RedactURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRedactedArguments(t *testing.T) {
	const red = "[redacted]"
	for _, c := range []struct{ in, want []string }{
		{[]string{"-y", "@modelcontextprotocol/server-filesystem", "/srv/data"},
			[]string{"-y", "@modelcontextprotocol/server-filesystem", "/srv/data"}},
		{[]string{"--token", "s3", "--verbose"}, []string{"--token", red, "--verbose"}},
		{[]string{"--token", "-s3"}, []string{"--token", red}},
		{[]string{"--api-key=s3", "x"}, []string{"--api-key=" + red, "x"}},
		{[]string{"--auth", "--verbose"}, []string{"--auth", "--verbose"}},
		{[]string{"-e", "PLAIN=s3", "image"}, []string{"-e", "PLAIN=" + red, "image"}},
		{[]string{"-e", "PLAIN", "image"}, []string{"-e", "PLAIN", "image"}},
		{[]string{"--env=GITHUB_TOKEN=s3"}, []string{"--env=GITHUB_TOKEN=" + red}},
		{[]string{"-H", "X-Anything: s3"}, []string{"-H", "X-Anything:" + red}},
		{[]string{"-u", "me:s3"}, []string{"-u", "me:" + red}},
		{[]string{"Authorization: Bearer s3"}, []string{"Authorization:" + red}},
		{[]string{"sh", "-c", "export A=1; GITHUB_TOKEN=s3 npx foo"}, []string{"sh", "-c",
			"export A=1; GITHUB_TOKEN=" + red}},
		{[]string{`{"token":"s3"}`}, []string{`{"token":` + red}},
		{[]string{"postgres://u:s3@db/app"}, []string{"postgres://redacted@db/app"}},
		{[]string{"--db=postgres://u:s3@db/app"}, []string{"--db=postgres://redacted@db/app"}},
		{[]string{"connect to postgres://u:s3@db/app now"}, []string{"connect to postgres://redacted@db/app now"}},
		{[]string{"https://auth.example:8443/mcp"}, []string{"https://auth.example:8443/mcp"}},
		{[]string{"ghp_0123456789abcdef"}, []string{red}},
		{[]string{"run,ghp_0123456789abcdef"}, []string{"run," + red}},
		{[]string{"@acme/mcp-auth-server@1.2"}, []string{"@acme/mcp-auth-server@1.2"}},
		{[]string{"Größe", "İtoken=s3"}, []string{"Größe", "İtoken=" + red}}, // lower case of İ has another length
	} {
		spec := messages.Spec{Command: "x", Args: slices.Clone(c.in)}
		if got := spec.Redacted().Args; !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
		if !slices.Equal(spec.Args, c.in) {
			t.Errorf("%q: the spec itself was changed", c.in)
		}
	}
	if got := (messages.Spec{Command: "npx foo --token s3"}).Redacted().Command; got != "npx foo --token "+red {
		t.Errorf("command: %q", got)
	}
}

func TestRedactedKeepsTheRest(t *testing.T) {
	in := messages.Spec{
		Type: messages.Stdio, Command: "node", Cwd: "/srv", Env: map[string]string{"A": "s3"},
		Headers: map[string]string{"B": "s3"},
		Auth:    &messages.Auth{Type: "api_key", HeaderName: "X", APIKey: "s3"}, AllowedTools: []string{"a"}, Trusted: true,
	}
	got := in.Redacted()
	want := in
	want.Env, want.Headers = map[string]string{"A": "[redacted]"}, map[string]string{"B": "[redacted]"}
	want.Auth = &messages.Auth{Type: "api_key", HeaderName: "X", APIKey: "[redacted]"}
	if !got.Equal(want) {
		t.Errorf("%+v", got)
	}
	if in.Env["A"] != "s3" || in.Headers["B"] != "s3" || in.Auth.APIKey != "s3" {
		t.Errorf("the spec itself was changed: %+v", in)
	}
	if r := (messages.Spec{}).Redacted(); r.Env != nil || r.Headers != nil || r.Args != nil || r.Auth != nil {
		t.Errorf("%+v", r)
	}
}

// canaryPlaces are all ways in which a secret is said to be found, each with its place as %s.
var canaryPlaces = []func(s *messages.Spec, canary string){
	func(s *messages.Spec, c string) { s.Env = map[string]string{"A": c, "TOKEN": "x" + c} },
	func(s *messages.Spec, c string) {
		s.Headers = map[string]string{"A": c, "Authorization": "Bearer " + c}
	},
	func(s *messages.Spec, c string) { s.Auth = &messages.Auth{Type: "api_key", APIKey: c} },
	func(s *messages.Spec, c string) { s.URL = "https://" + url.User(c).String() + "@h.example/mcp" },
	func(s *messages.Spec, c string) {
		s.URL = "https://" + url.UserPassword("u",
			c).String() + "@h.example/mcp?a=" + url.QueryEscape(c) + "&b#" + url.PathEscape(c)
	},
	func(s *messages.Spec, c string) { s.URL = "https://h.example/mcp?" + url.QueryEscape(c) },
	func(s *messages.Spec, c string) { s.URL = "u:" + c + "@h.example" },
	func(s *messages.Spec, c string) { s.URL = "http://h.example:port/?a=" + c },
	func(s *messages.Spec, c string) { s.Args = []string{"--token", c} },
	func(s *messages.Spec, c string) { s.Args = []string{"--API-KEY=" + c} },
	func(s *messages.Spec, c string) { s.Args = []string{"run", "-e", "ANY=" + c, "image"} },
	func(s *messages.Spec, c string) { s.Args = []string{"-H", "Any: " + c} },
	func(s *messages.Spec, c string) { s.Args = []string{"--header", "Any: " + c} },
	func(s *messages.Spec, c string) {
		s.Args = []string{"sh", "-c", "cd x && MY_SECRET='" + c + "' exec y " + c}
	},
	func(s *messages.Spec, c string) {
		s.Args = []string{"postgres://" + url.UserPassword("u", c).String() + "@db/app?sslcert=" + url.QueryEscape(c)}
	},
	func(s *messages.Spec, c string) { s.Args = []string{`{"password": "` + c + `"}`} },
	func(s *messages.Spec, c string) { s.Args = []string{"sk-" + c} },
	func(s *messages.Spec, c string) { s.Command = "env API_TOKEN=" + c + " npx server" },
}

func checkCanary(t interface{ Fatalf(string, ...any) }, canary string) {
	for i, place := range canaryPlaces {
		var s messages.Spec
		place(&s, canary)
		b, err := json.Marshal(s.Redacted())
		if err != nil {
			t.Fatalf("place %d: %v", i, err)
		}
		shown := string(b) + fmt.Sprintf("%+v", s.Redacted())
		for _, form := range []string{canary, url.UserPassword(canary, "").String(), url.QueryEscape(canary),
			url.PathEscape(canary)} {
			if strings.Contains(shown, strings.TrimSuffix(form, ":")) {
				t.Fatalf("place %d: %s holds the canary %q", i, shown, canary)
			}
		}
	}
}

func TestNoCanarySurvivesRedacted(t *testing.T) {
	seeds.Shows(t, "002.9.credentials")
	rapid.Check(t, func(t *rapid.T) {
		checkCanary(t, "C4nary"+rapid.StringMatching(`[A-Za-z0-9._~-]{4,40}`).Draw(t, "rest"))
	})
}

func FuzzRedacted(f *testing.F) {
	for _, s := range []string{"s3cr3t", "a b", "a;b", "a&b=c", "ü", "a/b", "a@b", "a:b", "a%zz", "a?b", "a#b", `a"b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		// JSON escapes control characters and quotes, and what cannot be UTF-8 is replaced: such a canary could not be found.
		if strings.ContainsFunc(rest, func(r rune) bool {
			return !unicode.IsPrint(r) ||
				strings.ContainsRune("\"\\<>&\ufffd", r)
		}) {
			return
		}
		checkCanary(t, "C4nary5ecret"+rest)
	})
}

// TestHideTokensInURLs: the query of a URL in a text is hidden to its end, whatever stands in it.
func TestHideTokensInURLs(t *testing.T) {
	for text, want := range map[string]string{
		"see https://host.example/a?key=canary&b=canary, too": "see https://host.example/a?key=redacted&b=redacted too",
		`"https://me:canary@host.example/" and a=b`:           `"https://redacted@host.example/" and a=b`,
		"<https://host.example/?a=canary|b>":                  "[redacted]",
	} {
		if got := messages.RedactTokens(text); strings.Contains(got, "canary") || got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
