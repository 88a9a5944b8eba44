// Package foreign reads the configuration files of other MCP clients into the form of supervisor/config. It is pure:
// the text and its name come in, entries and problems with line, column and key go out.
//
// Start with [Parse], which recognises the program by itself:
//
//	parsed := foreign.Parse(config.File{Path: path, Scope: messages.ScopeDynamic, Data: data}, foreign.Context{})
//	set := config.Merge([]config.Parsed{parsed}, config.Context{Lookup: os.LookupEnv})
//
// # How it fits
//
// The package supervisor/discover calls Parse for files that a person names, and the command import for those that
// [Locations] lists. A reader for each syntax (JSON with comments, TOML for Codex, YAML for Goose) makes one tree whose
// values know their places. Each program has a function that finds its lists of servers, and one that rewrites an entry
// into the keys of supervisor/config, whose reader then checks it like any other entry. A fault is therefore reported
// with the place and the key of the foreign file. The package owns no state; its tables are constant after init.
//
//	bytes ── readTree ──▶ config.Tree ── sections, entry, words of the program ──▶ config.ParseSections
//
// # Guarantees
//
//   - Everything that an entry says is carried over or named in a Problem: nothing that changes how a server is reached
//     or what may be called is lost silently. Keys that are only for people, or for the other program's own display,
//     are skipped.
//   - A file in mcpvisor's own form is read as config.Parse reads it. A file that has no known form gets a problem with
//     a place.
//   - A wrong entry affects no other entry. A fault of the syntax makes the whole file unusable, as it does in the
//     program that owns it.
//   - No value of env, headers, args or a URL appears in a Problem.
//   - Any bytes are accepted without panic, within the bounds of config.Parse.
//
// Not promised: that a value which the other program keeps elsewhere (its keyring, the answers to its prompts, its list
// of servers that are switched off by hand) is found. The problem names the variable that is read in its place.
//
// Public for the command: what it exports may change without notice.
package foreign
