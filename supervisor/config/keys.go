package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// wrappers holds the keys of a file under which servers stand. The first is the one that edits write.
var wrappers = []string{"mcpServers", "servers"}

// ignoredKeys holds keys of a file that belong to editors and to VS Code. They get no warning.
var ignoredKeys = map[string]bool{"$schema": true, "inputs": true}

// readFunc reads the value of one key into an entry.
type readFunc func(r *reader, e *Entry, v value)

// field says how one key of an entry is read.
type field struct {
	// means is the field of the spec that the key sets. Two keys of one entry with the same meaning must agree.
	means string
	read  readFunc
}

// specReaders holds what reads those keys of messages.Spec whose value is not just any text, a truth value or a duration: these
// need no row.
var specReaders = map[string]readFunc{
	"type": readType, "command": readCommand, "args": readArgs, "env": readEnv, "isolation": readIsolation,
	"headers": readHeaders, "auth": readAuth, "tls": readTLS,
	"connect": readWord(func(s *messages.Spec) *messages.Connect { return &s.Connect }, "write eager or lazy",
		messages.Eager, messages.Lazy),
	"callTimeout":    readUnbounded(func(s *messages.Spec) *messages.Duration { return &s.CallTimeout }),
	"maxCallTimeout": readUnbounded(func(s *messages.Spec) *messages.Duration { return &s.MaxCallTimeout }),
	"era":            readEra,
	"logLevel": readWord(func(s *messages.Spec) *string { return &s.LogLevel },
		"write one of "+strings.Join(messages.LogLevels, ", "), messages.LogLevels...),
	"share": readWord(func(s *messages.Spec) *messages.Share { return &s.Share }, "write all or principal",
		messages.ShareAll, messages.SharePrincipal),
	"maxInstances": readMaxInstances,
	"instanceIdle": readInstanceIdle,
	"maxMessage":   readMaxMessage,
	"maxInFlight":  readMaxInFlight,
	"maxQueued":    readMaxQueued,
	"allowedTools": func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.AllowedTools) },
	"deniedTools":  func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.DeniedTools) },
	// dropClaims removes a word that a project may not say.
	"pin": readWord(func(s *messages.Spec) *string { return &s.Pin }, "write off, warn or hold",
		messages.PinOff, messages.PinWarn, messages.PinHold),
}

// otherKeys holds the keys that are no field of the spec, and those whose value has another form than that of the spec's own key.
var otherKeys = map[string]field{
	"envFile": {"envFile", readEnvFile},
	"approve": {"approve", readApprove},
	// Claude Code.
	"headersHelper": {"headersHelper", readHeadersHelper},
	"oauth":         {"auth", readOAuth},
	// Codex names the variable that holds a bearer token, and has the unit of a duration in the name of the key.
	"bearer_token_env_var": {"auth", readTokenVariable},
	"startup_timeout_sec":  {"connectTimeout", func(r *reader, e *Entry, v value) { r.readSeconds(v, &e.Spec.ConnectTimeout) }},
	"tool_timeout_sec":     {"callTimeout", func(r *reader, e *Entry, v value) { r.readSeconds(v, &e.Spec.CallTimeout) }},
	// Gemini CLI and others.
	"httpUrl": {"url", readHTTPURL},
	"enabled": {"disabled", readEnabled},
}

// otherNames maps names that other clients give to a key to the spec's own: cmd, envs and uri are Goose's, environment is
// opencode's, serverUrl is Windsurf's, includeTools and excludeTools are Gemini CLI's, and those with a line between the words Codex's.
var otherNames = map[string]string{
	"transport": "type", "transportType": "type", "cmd": "command", "environment": "env", "envs": "env",
	"uri": "url", "serverUrl": "url", "http_headers": "headers",
	"startup_timeout_ms": "connectTimeout", "startupTimeout": "connectTimeout", "timeout": "callTimeout",
	"enabled_tools": "allowedTools", "includeTools": "allowedTools", "enabledTools": "allowedTools",
	"disabled_tools": "deniedTools", "excludeTools": "deniedTools", "disabledTools": "deniedTools",
}

// fields maps the keys of an entry to how they are read.
var fields = func() map[string]field {
	all := maps.Clone(otherKeys)
	for i, f := range reflect.VisibleFields(reflect.TypeFor[messages.Spec]()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		read := specReaders[key]
		if read == nil {
			read = readPlain(i)
		}
		all[key] = field{key, read}
	}
	for other, key := range otherNames {
		all[other] = all[key]
	}
	return all
}()

// fieldNames holds the candidates for a suggestion when a key is unknown.
var fieldNames = slices.Sorted(maps.Keys(fields))

// remarkKeys holds keys that have no influence on how a server is reached: texts for people, and hints of other clients. They
// are skipped without a warning.
var remarkKeys = map[string]bool{
	"description": true, "title": true, "displayName": true, "icon": true, "version": true, "gallery": true, "note": true,
	"alwaysLoad": true, "display_name": true, "bundled": true, "supports_parallel_tool_calls": true, "category": true,
	"tags": true, "homepage": true, "repository": true, "author": true, "comment": true, "iconPath": true,
}

// isRemark reports whether a key is a remark. Besides remarkKeys, the prefixes _, $ and // mark keys that people use as
// comments in JSON.
func isRemark(key string) bool {
	return remarkKeys[key] || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "$") || strings.HasPrefix(key, "//")
}

// permissionHint is the fix for keys by which other clients decide when to ask a person.
const permissionHint = `write rules of your own: "permissions": {"default": "ask", "allow": ["mcp__server__tool"]}`

// unsupportedKeys maps keys of other clients that change what a server may do, or how it is reached, to what a person can do
// instead. Each gets a warning, because ignoring it silently would surprise its author.
var unsupportedKeys = map[string]string{
	"autoApprove":                 permissionHint,
	"alwaysAllow":                 permissionHint,
	"default_tools_approval_mode": permissionHint,
	"approval_mode":               permissionHint,
	"trust":                       permissionHint,
	// Google's ways to sign in, which Gemini CLI has built in.
	"authProviderType":         "write auth",
	"targetAudience":           "write auth",
	"targetServiceAccount":     "write auth",
	"experimental_environment": "it runs on this machine",
	// Other programs restart a server in development when its files change.
	"watchPaths":            "a changed file restarts nothing",
	"dev":                   "a changed file restarts nothing",
	"authServerMetadataUrl": "the authorization server is discovered; write authUrl and tokenUrl if it cannot be",
	// Lists of tools under other names; a word is not translated silently, because some programs mean all tools by it.
	"tools":           "write allowedTools",
	"available_tools": "write allowedTools",
	// Names of variables that the other program passes on.
	"env_vars":         `write env: {"NAME": "${NAME}"}`,
	"env_keys":         `write env: {"NAME": "${NAME}"}`,
	"env_http_headers": `write headers: {"NAME": "${VARIABLE}"}`,
	// Other programs' sandboxes have rules of their own, which isolation does not copy.
	"sandbox":        "nothing of it is enforced; write isolation",
	"sandboxEnabled": "nothing of it is enforced; write isolation",
}
