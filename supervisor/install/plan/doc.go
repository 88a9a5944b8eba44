// Package plan turns a server.json, the document by which MCP registries describe a server, into the spec that runs it.
// It is pure: the document, the values that the person gave, the answers to questions and the properties of this
// machine are arguments.
//
//	server, err := plan.Read(document)                        // one server.json
//	choice, err := plan.Choose(server, "", machine)           // which of its packages and remotes, and why
//	result, err := plan.Build(choice.Way, fill, machine, nil) // the spec, and what the person should know about it
//
// # How it fits
//
// Package supervisor/install does the I/O and calls Read, Choose and Build in this order; the command install prints
// Notes and implements Ask. This package calls supervisor/config/steer for names of variables that steer programs. It
// owns no state.
//
// A package that speaks over standard input and output becomes this command line:
//
//	npm     npx -y [runtime arguments] IDENTIFIER@VERSION [package arguments]; bunx if that is its hint
//	pypi    uvx [runtime arguments] IDENTIFIER@VERSION [package arguments]; pipx run if that is its hint
//	nuget   dnx IDENTIFIER@VERSION --yes [runtime arguments] -- [package arguments]
//	oci     docker run --rm -i -e NAME… [runtime arguments] IMAGE [package arguments]; podman if that is its hint, or all
//	        that this machine has
//	cargo   the program itself, by its path among those that cargo installs; the person installs it, because cargo has no
//	        way to run a package at once
//	mcpb    the command of manifest.json in the unpacked bundle; see Manifest
//
// A package that speaks HTTP becomes an entry for its URL, and a note with the command that a person must keep running:
// mcpvisor starts servers that speak over standard input and output only. A remote becomes an entry for its URL.
//
// # Guarantees
//
//   - The same arguments give the same result.
//   - No word of the publisher is read as a reference to the person's environment. The entry will be expanded when it
//     is read (${TOKEN}), so that a document with "${" in a text that would get into it is refused; only values that
//     the person gave or typed may hold such references.
//   - No word of the publisher becomes an option of the program that fetches the package by standing in the place of
//     the identifier or the version: both are checked against the alphabet of their registry.
//   - Runtime arguments, which are options of that program, come from a table per program; its options fetch, run,
//     mount and reach only the package. All others are ErrUnusable, which names them. A container mounts only places
//     that the person named.
//   - No word of the publisher sets a variable that steers a program (supervisor/config/steer), unless it is set inside
//     of a container or leads into the bundle's own directory. The person may set each of them.
//   - No crate has the name of a shell, an interpreter or another program that runs what its arguments say.
//   - Values marked as secret go into the entry's environment, headers or arguments, and never into an error or a note.
//   - An input that is required and has no value is an error that names it, never an empty text.
//
// Not promised: that the package is what its name says. A version is pinned where the document names one; only mcpb
// bundles, and images named by digest, are pinned by content.
//
// Public for the command: what it exports may change without notice.
package plan
