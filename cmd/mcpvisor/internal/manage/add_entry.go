package manage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// splitEnv reads the values of --env. asked holds keys without a value, for which the person will be asked. No error quotes a
// value, since it may be a secret.
func splitEnv(words []string) (values map[string]string, asked []string, err error) {
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		// A quote or a blank in the key means that the shell did not split the words as the person thought.
		if key == "" || strings.ContainsAny(key, " \t\n\"'") {
			return nil, nil, errors.New("--env: write KEY=VALUE, or KEY='${KEY}' to take it from the environment at each start")
		}
		if _, twice := values[key]; twice || slices.Contains(asked, key) {
			return nil, nil, fmt.Errorf("--env: %s is given twice", messages.Line(key, 60))
		}
		if !ok {
			asked = append(asked, key)
			continue
		}
		if values == nil {
			values = map[string]string{}
		}
		values[key] = value
	}
	return values, asked, nil
}

// splitHeaders reads the values of --header, "NAME: VALUE". Names that differ only in case are the same header in HTTP.
func splitHeaders(words []string) (map[string]string, error) {
	var out map[string]string
	for _, word := range words {
		key, value, ok := strings.Cut(word, ":")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ContainsAny(key, " \t\n=") {
			return nil, errors.New("--header: write 'NAME: VALUE'")
		}
		for other := range maps.Keys(out) {
			if strings.EqualFold(other, key) {
				return nil, fmt.Errorf("--header: %s is given twice", messages.Line(key, 60))
			}
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = strings.TrimSpace(value)
	}
	return out, nil
}

// specFromFlags returns the spec that a command or a URL and the flags describe. It refuses only what a command line alone can
// say wrongly; what a file could say wrongly is found when the file is read with the entry in it.
func (a addArgs) specFromFlags(cmd *cobra.Command, f addFlags, env, headers map[string]string) (messages.Spec, error) {
	kind, known := messages.TransportKindOf(f.transport)
	switch {
	// A server of another program, and a connector, cannot be described by flags.
	case f.transport != "" && (!known || kind == messages.SDK || kind == messages.ClaudeAIProxy):
		return messages.Spec{}, exit.UsageError(cmd, "--transport: %q is no way to reach a server; write stdio, http, sse or ws",
			messages.Line(f.transport, 40))
	case a.url != "" && kind == messages.Stdio:
		return messages.Spec{}, exit.UsageError(cmd, "--transport stdio is for a command, and this is a URL; leave it out")
	case a.url != "" && len(f.env) > 0:
		return messages.Spec{}, exit.UsageError(cmd, "--env is for a program; a remote server takes --header 'NAME: VALUE'")
	case a.url == "" && len(f.headers) > 0:
		return messages.Spec{}, exit.UsageError(cmd, "--header is for a remote server; a program takes --env KEY=VALUE")
	case a.url == "" && (f.clientID != "" || f.callbackPort != 0):
		return messages.Spec{}, exit.UsageError(cmd, "--client-id and --callback-port are for a remote server")
	case f.callbackPort < 0 || f.callbackPort > 65535:
		return messages.Spec{}, exit.UsageError(cmd, "--callback-port: %d is no port; use 1 to 65535", f.callbackPort)
	}
	if a.url == "" {
		return messages.Spec{Type: messages.Stdio, Command: a.command[0], Args: a.command[1:], Env: env}, nil
	}
	s := messages.Spec{Type: cmp.Or(kind, messages.TransportKindOfURL(a.url)), URL: a.url, Headers: headers}
	if s.Type == "" {
		// A URL without --transport may be either kind of HTTP server: the newer protocol is tried first.
		s.Type, s.FallbackSSE = messages.HTTP, true
	}
	if f.clientID != "" || f.callbackPort != 0 {
		s.Auth = &messages.Auth{Type: messages.AuthOAuth, ClientID: f.clientID, CallbackPort: f.callbackPort}
	}
	return s, nil
}

// entryJSON returns the JSON of one entry as it was typed, without comments; "-" reads it from in, up to config.MaxFile bytes.
// It refuses a whole file ("mcpServers"), which would end up nested under the name.
func entryJSON(text string, in io.Reader) (json.RawMessage, error) {
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(in, config.MaxFile+1))
		if err != nil || len(b) > config.MaxFile {
			return nil, errors.New("standard input cannot be read, or holds too much")
		}
		text = string(b)
	}
	if _, bad := config.ReadJSON("", []byte(text)); bad != nil && strings.TrimSpace(text) != "" {
		return nil, fmt.Errorf(`%w; write the JSON in single quotes: '{"command": "…"}'`, *bad)
	}
	b, err := hujson.Standardize([]byte(text + "\n")) // the newline ends a comment that is the end of the text
	if err != nil || !json.Valid(b) {                 // the text of err is not used: it may quote a secret
		return nil, errors.New(`this is no JSON; write it in single quotes: '{"command": "…"}'`)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil || members == nil {
		return nil, errors.New(`it is no JSON object; write '{"command": "…"}'`)
	}
	for _, key := range []string{"mcpServers", "servers"} {
		if _, whole := members[key]; whole {
			return nil, fmt.Errorf("write only the entry of one server, what stands under its name in %q", key)
		}
	}
	return json.RawMessage(strings.TrimSpace(string(b))), nil
}

// specOfJSON returns the spec that an entry describes, by parsing a file that holds only that entry. It returns the first error
// of the entry; faults that depend on other entries are found when the real file is read.
func specOfJSON(name string, entry json.RawMessage) (messages.Spec, error) {
	text := append(append([]byte(`{"mcpServers": {`), schema.EncodeJSON(name)...), ':')
	text = append(append(text, entry...), "}}"...)
	p := config.Parse(config.File{Path: "the entry", Data: text})
	e, ok := p.Servers[name]
	for _, problem := range p.Problems {
		if !problem.Warning && (!ok || problem.Server == name) {
			return messages.Spec{}, exit.With(exit.Usage, flagProblem(problem))
		}
	}
	return e.Spec, nil
}

// flagProblem phrases a problem of an entry by the flag that caused it, because the person typed a flag and no key of a file.
func flagProblem(p config.Problem) string {
	text := p.Text
	if p.Fix != "" {
		text += "; " + p.Fix
	}
	head, rest, _ := strings.Cut(p.Key, ".")
	switch {
	case head == "env" && rest != "":
		text = "--env " + messages.Line(rest, 60) + ": " + text
	case head == "headers" && rest != "":
		text = "--header " + messages.Line(rest, 60) + ": " + text
	case head == "type":
		text = "--transport: " + text
	case head == "url":
		text = "the URL: " + text
	case head == "command" || strings.HasPrefix(head, "args"):
		text = "the command: " + text
	case p.Key != "":
		text = messages.Line(p.Key, 80) + ": " + text
	}
	return text
}

// secretArgument is the name that secretsInClear gives to an argument that looks like a secret.
const secretArgument = "an argument of the command"

// secretArgumentNote is the warning about such an argument where the file is the person's own. For the project's file another
// warning names everything that looks like a secret.
const secretArgumentNote = "an argument looks like a secret, and everybody on this machine can read arguments in the list of processes; " +
	"if the server takes it from a variable as well, write --env NAME=VALUE in its place"

// secretsInClear names the values of a spec that look like secrets and are written out in it, not taken from a variable. It
// uses the redaction of messages.Spec, so that what is warned about is the same as what status output hides.
func secretsInClear(s messages.Spec) (names []string) {
	shown := func(words ...string) bool {
		probe := messages.Spec{Args: words}
		return slices.Equal(probe.Redacted().Args, words)
	}
	collectSecrets := func(flag string, values map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if v := values[key]; v != "" && !strings.Contains(v, "${") && !shown(key+"="+v) {
				names = append(names, flag+" "+messages.Line(key, 60))
			}
		}
	}
	collectSecrets("--env", s.Env)
	collectSecrets("--header", s.Headers)
	if plain := slices.DeleteFunc(slices.Clone(s.Args), func(a string) bool { return strings.Contains(a, "${") }); !shown(plain...) {
		names = append(names, secretArgument)
	}
	if !strings.Contains(s.URL, "${") && messages.RedactURL(s.URL) != s.URL {
		names = append(names, "the URL")
	}
	return names
}
