// Package steer knows which environment variables decide what a program does before it begins: where it is found, what
// is loaded into it, where its packages come from, whose addresses and certificates it believes. A stranger who sets one
// of them runs code of their own in a program that a person has chosen.
//
// [Reason] judges a name by a table, and [Harmless] by a short list of the opposite. Most names are neither: what API_KEY
// or BASE_URL does is known to the server alone. A person who reads and approves an entry sees all names, so for a person
// Reason is enough, and it names what deserves a look. A rule that must hold without a person goes by Harmless and by
// names that the rule itself lists, and never by the absence of a reason: no table of what steers can be complete.
//
// Names are compared without regard to case, because npm, Windows and many proxies do the same: Npm_Config_Registry is
// npm_config_registry.
package steer
