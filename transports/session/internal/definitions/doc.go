// Package definitions reads what a server declares: its own description, tools, resources, resource templates and prompts.
//
//	tool, reason := definitions.ReadTool(raw) // reason says why the tool cannot be used, empty if it can
//
// A member that an entry can be used without is dropped if it has a wrong type. An entry that cannot be used gives a reason in
// words, and its name as far as it is known, so that a person can be told. What is kept shares the bytes of raw.
//
// Package lists calls these functions for each entry of a list, package session for serverInfo.
//
// Guarantees: a definition larger than MaxDefinition is refused with a reason. So is a tool that two programs would read differently
// (a member that is there twice, at any depth), because a person approves its definition and a model acts on it. Of a doubled
// member of a resource, a template, a prompt or serverInfo the last one counts: their definitions are not approved. The
// functions keep nothing and may be called from any goroutine.
//
// Not promised: a schema is kept as it is. Whether arguments fit it is decided where a call is made.
//
//	tool.go       tools, with their input schema and annotations
//	resource.go   resources and templates
//	prompt.go     prompts with their arguments
//	server.go     serverInfo, and icons, which all of them have
//	key.go        the name or URI by which an entry is addressed
//
// The readers walk over the bytes (messages/rawjson) and do not decode into structures: encoding/json would take members whose names
// differ in case, and of doubled ones the last without a word.
package definitions
