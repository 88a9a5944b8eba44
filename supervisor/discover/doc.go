// Package discover finds and reads the configuration of a directory, and remembers which of its servers the person
// approved. It does the I/O for the pure package supervisor/config.
//
// Start with [Load]; it does everything that the command and FromFiles need:
//
//	found, err := discover.Load(discover.Options{Dir: dir})
//	for name, spec := range found.Specs { … }
//
// Where it looks, lowest precedence first:
//
//	managed   /etc/mcpvisor/managed-mcp.json; macOS: /Library/Application Support/mcpvisor/managed-mcp.json;
//	          Windows: C:\ProgramData\mcpvisor\managed-mcp.json. Exclusive if it is there.
//	user      mcpvisor/mcp.json in the person's configuration directory (os.UserConfigDir)
//	project   .mcp.json and .mcpvisor/mcp.json (which wins) in the directory, and in its parents up to the one that
//	          holds .git; a nearer directory wins. Without a .git above, only the directory itself counts: a shared
//	          parent such as /tmp belongs to others. The home directory is no parent.
//	local     .mcpvisor/mcp.local.json in the same directories
//	dynamic   the files named with --config, in their order, then the values of --mcp-server
//
// # How it fits
//
// The supervisor calls Load at its start and [Read] with [Snapshot.Reread] for a reload; the commands call Load,
// Approve and the edits. This package calls supervisor/config for the meaning of the files and config/foreign for named
// files of other programs. It owns the store of approvals and the lock of edits on disk; it starts no goroutine and
// keeps no state between calls besides the values that it returns.
//
//	files ── Read ──▶ Snapshot ── config.Merge ──▶ config.Set ── Approvals.Apply ──▶ Configuration
//
// # Guarantees
//
//   - A server of a file that was merely found in the project starts only after the person approved it, by its content:
//     until then, and again after every change, Spec.Hold says so and names the command. Local files count as found,
//     too: they lie in the project, and a clone may bring one. Files named with --config are approved by being named.
//   - A missing file is no fault unless it was named. A file that exists and cannot be read is a problem, and an
//     unreadable managed file still excludes the others.
//   - An approval covers the whole entry as it is written, where it was found and what it means there (config.Binding).
//     Variables that its envFile has gained since are left out. Changed files of the project that it names are
//     reported, and need a new approval where "approve": "files" says so. Below an entry that waits, the person's own
//     server of that name counts.
//   - Files of a project that lead out of it by links are neither read nor written. The person's own file and the store
//     are used only while no other user may write them.
//   - The store of approvals has mode 0600, holds hashes and no content, and is replaced as a whole: a crash leaves the
//     old one or the new one. A store that cannot be read approves nothing and is never overwritten.
//   - Where a file was merely found, only regular files are read; a pipe is read only if it was named.
//   - All writes go through Edit, which keeps what other programs write at the same time.
//
// Not promised: that an approved entry stays harmless. The approval covers its words, and of the program that they name
// only whether files of the project are unchanged, up to 64 of 8 MiB each.
//
// Public for the command: what it exports may change without notice.
package discover
