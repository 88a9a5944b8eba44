package config

import (
	"maps"
	"slices"
	"strings"
)

// wrappers holds the keys of a file under which servers stand. The first is the one that edits write.
var wrappers = []string{"mcpServers", "servers"}

// ignoredKeys holds keys of a file that belong to editors and to VS Code. They get no warning.
var ignoredKeys = map[string]bool{"$schema": true, "inputs": true}

// field says how one key of an entry is read.
type field struct {
	// means is the field of the spec that the key sets. Two keys of one entry with the same meaning must agree.
	means string
	read  func(r *reader, e *Entry, v value)
}

// fields maps the keys of an entry: those of messages.Spec first, then the names that other clients give to the same.
var fields = map[string]field{
	"type":           {"type", readType},
	"command":        {"command", readCommand},
	"args":           {"args", readArgs},
	"env":            {"env", readEnv},
	"envFile":        {"envFile", readEnvFile},
	"cwd":            {"cwd", func(r *reader, e *Entry, v value) { r.readText(v, &e.Spec.Cwd) }},
	"inheritEnv":     {"inheritEnv", readInheritEnv},
	"isolation":      {"isolation", readIsolation},
	"mayControl":     {"mayControl", func(r *reader, e *Entry, v value) { r.readBool(v, &e.Spec.MayControl) }},
	"url":            {"url", func(r *reader, e *Entry, v value) { r.readText(v, &e.Spec.URL) }},
	"headers":        {"headers", readHeaders},
	"auth":           {"auth", readAuth},
	"allowPlainHTTP": {"allowPlainHTTP", func(r *reader, e *Entry, v value) { r.readBool(v, &e.Spec.AllowPlainHTTP) }},
	"tls":            {"tls", readTLS},
	"fallbackSSE":    {"fallbackSSE", func(r *reader, e *Entry, v value) { r.readBool(v, &e.Spec.FallbackSSE) }},
	"name":           {"name", readName},
	"id":             {"id", func(r *reader, e *Entry, v value) { r.readText(v, &e.Spec.ID) }},
	"disabled":       {"disabled", func(r *reader, e *Entry, v value) { r.readBool(v, &e.Spec.Disabled) }},
	"connect":        {"connect", readConnect},
	"idleTimeout":    {"idleTimeout", func(r *reader, e *Entry, v value) { r.readDuration(v, &e.Spec.IdleTimeout) }},
	"connectTimeout": {"connectTimeout", func(r *reader, e *Entry, v value) { r.readDuration(v, &e.Spec.ConnectTimeout) }},
	"callTimeout":    {"callTimeout", readCallTimeout},
	"maxCallTimeout": {"maxCallTimeout", readMaxCallTimeout},
	"era":            {"era", readEra},
	"logLevel":       {"logLevel", readLogLevel},
	"stopGrace":      {"stopGrace", func(r *reader, e *Entry, v value) { r.readDuration(v, &e.Spec.StopGrace) }},
	"maxMessage":     {"maxMessage", readMaxMessage},
	"maxInFlight":    {"maxInFlight", readMaxInFlight},
	"maxQueued":      {"maxQueued", readMaxQueued},
	"allowedTools":   {"allowedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.AllowedTools) }},
	"deniedTools":    {"deniedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.DeniedTools) }},
	"pin":            {"pin", readPin},
	"approve":        {"approve", readApprove},
	"trusted":        {"trusted", func(r *reader, e *Entry, v value) { r.readBool(v, &e.Spec.Trusted) }},

	// Codex names the variable that holds a bearer token.
	"bearer_token_env_var": {"auth", readTokenVariable},

	// Other words for the transport, the command, the variables and the URL: cmd, envs and uri are Goose's, environment
	// is opencode's, http_headers and the lists of tools are Codex's.
	"transport":      {"type", readType},
	"transportType":  {"type", readType},
	"cmd":            {"command", readCommand},
	"environment":    {"env", readEnv},
	"envs":           {"env", readEnv},
	"uri":            {"url", func(r *reader, e *Entry, v value) { r.readText(v, &e.Spec.URL) }},
	"http_headers":   {"headers", readHeaders},
	"enabled_tools":  {"allowedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.AllowedTools) }},
	"disabled_tools": {"deniedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.DeniedTools) }},

	// Codex has the unit of a duration in the name of the key.
	"startup_timeout_sec": {"connectTimeout", func(r *reader, e *Entry, v value) { r.readSeconds(v, &e.Spec.ConnectTimeout) }},
	"startup_timeout_ms":  {"connectTimeout", func(r *reader, e *Entry, v value) { r.readDuration(v, &e.Spec.ConnectTimeout) }},
	"tool_timeout_sec":    {"callTimeout", func(r *reader, e *Entry, v value) { r.readSeconds(v, &e.Spec.CallTimeout) }},

	// Names from Windsurf (serverUrl), Gemini CLI (httpUrl, includeTools, excludeTools), Claude Code (headersHelper)
	// and others.
	"serverUrl":      {"url", func(r *reader, e *Entry, v value) { r.readText(v, &e.Spec.URL) }},
	"httpUrl":        {"url", readHTTPURL},
	"oauth":          {"auth", readOAuth},
	"headersHelper":  {"headersHelper", readHeadersHelper},
	"enabled":        {"disabled", readEnabled},
	"startupTimeout": {"connectTimeout", func(r *reader, e *Entry, v value) { r.readDuration(v, &e.Spec.ConnectTimeout) }},
	"timeout":        {"callTimeout", readCallTimeout},
	"includeTools":   {"allowedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.AllowedTools) }},
	"enabledTools":   {"allowedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.AllowedTools) }},
	"excludeTools":   {"deniedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.DeniedTools) }},
	"disabledTools":  {"deniedTools", func(r *reader, e *Entry, v value) { r.readToolNames(v, &e.Spec.DeniedTools) }},
}

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
