// Package definitions reads what a server declares: its own description, tools, resources, resource templates and prompts.
//
//	tool, reason := definitions.ReadTool(raw) // reason says why the tool cannot be used, empty if it can
//
// A member that an entry can be used without is dropped if it has a wrong type. An entry that cannot be used gives a reason in
// words, and its name as far as it is known, so that a person can be told. What is kept shares the bytes of raw.
//
// Package lists calls these functions for each entry of a list, package session for serverInfo.
package definitions
