// Package config turns configuration files into server specs. It is pure: the caller passes files, environment and directories
// in as values, and the package supervisor/discover finds and reads them.
//
// Start with [Parse] for each file, then [Merge] for all of them:
//
//	set := config.Merge([]config.Parsed{config.Parse(user), config.Parse(project)}, config.Context{Lookup: os.LookupEnv})
//	for name, spec := range set.Specs { … }
//	for _, p := range set.Problems { fmt.Println(p.Error()) }
//
// A file is JSON; comments, trailing commas and a byte order mark are accepted. Its servers stand under "mcpServers" or
// "servers" (both may stand), as an object from names to entries or as a list of entries with a "name". The keys of an entry
// are those of [messages.Spec] in its JSON form, and the names that other clients gave them (keys.go lists all).
//
// # How it fits
//
// The package supervisor/discover calls Parse, or ParseSections for a file that supervisor/config/foreign has translated, and
// then Merge. The supervisor starts the specs of the Set, asks its Policies before each start, and learns from [Compare] which
// servers a reload touches. The commands print Problems and show a Review before a person approves an entry. This package calls
// supervisor/access for the syntax of rules and transports/isolation for what a machine can enforce. It owns no state and
// starts no goroutine:
//
//	bytes ── Parse ──▶ Parsed ──┐
//	bytes ── foreign ─▶ Parsed ─┼─ Merge(Context) ──▶ Set ──▶ supervisor, commands
//	--mcp-server ─ Flags ───────┘
//
// # Guarantees
//
//   - A bad entry affects no other entry. It stays in the set, with Spec.Invalid saying what is wrong and where.
//   - Every fault is reported, not only the first; each with file, line and column, the server, the key and the fix. Lines and
//     columns count from 1, columns in characters.
//   - No value from the environment, of env, headers, args or a URL appears in a Problem or in Spec.Invalid. Names of
//     variables, keys and servers do, and so do short words that are no secret: types, durations, connect.
//   - Merge expands variables once: what a variable holds is never expanded again.
//   - A variable that is not set and has no default is a fault of its server, never an empty text.
//   - Whole entries win: dynamic over local over project over user; within one scope the later file. Nothing is merged key by
//     key. A managed file is exclusive, even if it is unreadable.
//   - Merge, Compare and Binding.Hash give the same answer for the same input; no order of a map shows.
//   - Parse accepts any bytes without panic, bounded in size (4 MiB) and nesting (64).
//
// Not promised: that a spec without a problem works (nothing is dialled or looked up here), that an entry which a higher scope
// shadows has its variables and URL checked, and that a binding covers the content of the program that a command names: it
// names the files of the project.
//
// Public for the command: what it exports may change without notice.
package config
