// Package steer knows which environment variables decide what a program does before it begins: which file is found for
// a name, which code is loaded into it, where its packages come from, which addresses and certificates it trusts. A
// stranger who sets one of them runs code of their own in a program that a person has chosen.
//
// [Reason] judges a name by a table, and [Harmless] by a short list of the opposite. Most names are neither: only the
// server knows what API_KEY or BASE_URL does. A person who reads and approves an entry sees all names, and Reason marks
// those that deserve attention. A rule that must hold without a person uses Harmless and names that the rule itself
// lists, and never the absence of a reason, because no table of steering variables can be complete.
//
// # How it fits
//
// The package supervisor/config calls Reason for the approval screen and for files of variables, and Harmless for
// policies; supervisor/install/plan calls it for variables that a registry entry asks for. It calls no other package of
// mcpvisor and owns only constant tables, which are built at their first use.
//
// Names are compared without regard to case, because npm, Windows and many proxies do the same: Npm_Config_Registry is
// npm_config_registry.
//
// Not promised: a complete table. New variables that steer a program come with each new program.
//
// Public for the command: what it exports may change without notice.
package steer
