// Package definitions reads what a server declares: its own description, tools, resources, resource templates and prompts.
//
//	tool, reason := definitions.ReadTool(raw) // reason says why the tool cannot be used, empty if it can
//
// A member that an entry can be used without is dropped if it has a wrong type. An entry that cannot be used gives a reason in
// words, and its name as far as it is known, so that a person can be told. What is kept shares the bytes of raw.
//
// Package lists calls these functions for each entry of a list, package session for serverInfo.
//
// Guarantees: a definition that two programs would read differently (a name that is there twice) or that is beyond the bound of its
// size is refused with a reason. The functions keep nothing and may be called from any goroutine.
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
