package config

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	authNone   = "none"
	authAPIKey = "api_key"
)

// laterAuth are the ways to authorise that a configuration may name and that this version does not perform.
var laterAuth = []string{"oauth", "token_file", "client_credentials", "token_exchange"}

// authNames are the keys of auth, those of laterAuth included, which are read over.
var authNames = []string{
	"type", "headerName", "apiKey",
	"authUrl", "tokenUrl", "clientId", "clientSecret", "scope", "scopes", "tokenPath",
}

// readAuth reads {type, headerName, apiKey}. A type that this version does not perform fails the server: connecting
// without it would look like a wrong password.
func readAuth(r *reader, e *Entry, v value) {
	var a messages.Auth
	before := len(r.problems)
	if !r.object(v, `write {"type": "api_key", "apiKey": "${NAME}"}`, func(key string, at Pos, m value) {
		switch {
		case isNull(m):
		case key == "type":
			r.text(m, &a.Type)
		case key == "headerName":
			if r.text(m, &a.HeaderName) && !isToken(a.HeaderName) {
				r.report(r.pos(m.Value), m.key, "this cannot be the name of a header", `write "X-API-Key"`)
			}
		case key == "apiKey":
			r.lenient(m, &a.APIKey)
		case !slices.Contains(authNames, key):
			r.unknown(m.key, key, at, authNames)
		}
	}) {
		return
	}
	if a.Type == "" && a.APIKey != "" {
		a.Type = authAPIKey
	}
	place := e.place("auth.type")
	_, hasKey := e.at["auth.apiKey"]
	switch {
	case a.Type == authNone || invalid(r.problems[before:]) != "":
	case a.Type == authAPIKey && (!hasKey || a.APIKey == ""):
		r.report(place, "auth.apiKey", "api_key needs the key", `add "apiKey": "${NAME}"`)
	case a.Type == authAPIKey:
	case slices.Contains(laterAuth, a.Type):
		r.report(place, "auth.type", a.Type+" is not supported by this version",
			"use api_key with a token, or headers")
	case a.Type == "":
		r.report(e.place("auth"), "auth", "it has no type", "write none or api_key")
	default:
		fix := "known are none, api_key; oauth and token_file are not supported by this version"
		r.report(place, "auth.type", "unknown type "+quote(messages.Line(a.Type, 40)), fix)
	}
	e.Spec.Auth = &a
}
