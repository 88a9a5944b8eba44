// Package install finds MCP servers by name in an MCP registry (API v0.1) and turns their descriptions into specs. It
// does the I/O for the pure package supervisor/install/plan, which makes the decisions.
//
//	registry, err := install.New(install.Options{})                    // the official one
//	page, err := registry.Search(ctx, install.Query{Word: "weather"})  // by a part of the name
//	entry, err := registry.Find(ctx, "io.github.owner/server@1.2.3")   // or "server", if that is unique
//	made, err := registry.Prepare(ctx, entry, install.Request{ValueSource: plan.ValueSource{Ask: ask}})
//	err = m.Connect(ctx, made.Name, made.Spec)                         // or write it into a file
//
// # How it fits
//
// The commands search and install call this package; it calls supervisor/install/plan for the choice of a package and
// for the spec, and transports for the settings of HTTP. It owns the directories Options.Cache, with the downloaded
// bundles, and Options.Bundles, with their content, and writes nothing else. It starts no server and no goroutine that
// outlives a call.
//
//	name ── Find ──▶ Entry ── Prepare: plan.Choose, fetchBundle, plan.Build ──▶ Installation
//
// # Guarantees
//
//   - Every request ends: 15 s for one attempt, three attempts, 4 MiB for one answer, 20 pages for one name. After 429,
//     5xx or no answer, the request is repeated after its Retry-After (at most 30 s; a longer one ends the request) or
//     after 0.5 s and 1 s, each with up to as much again of jitter.
//   - Options.Token is sent to the registry's own origin only. Answers that redirect to another origin are refused, and
//     so is http to another machine.
//   - A bundle is used only if its content has the checksum of its entry: checked while it is downloaded, and again
//     each time that it is taken from the cache. What was unpacked is compared with the archive before it is used
//     again.
//   - A bundle is unpacked into its own directory or not at all. Names that lead out of it, names that stand twice,
//     links and devices are refused; so is content beyond MaxUnpacked or 50,000 files, counted by what it really
//     unpacks to.
//   - Errors are *messages.Error. They name the registry's host and the server, and hold no token and no value that a
//     person gave; Error escapes the registry's own texts.
//
// Not promised: that a registry tells the truth. It says which program will run with the person's rights: show the
// entry before it is started.
//
// Public for the command: what it exports may change without notice.
package install
