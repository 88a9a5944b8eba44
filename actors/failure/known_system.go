package failure

// system are messages of shells, the dynamic linker and the kernel, which come from programs in all languages.
var system = []knownFailure{
	{
		// The dynamic linker (ld.so) ends the program before its first instruction.
		name: "linker-library", sign: "error while loading shared libraries: ",
		pattern: `error while loading shared libraries: (\S+?): cannot open`,
		reason:  "the shared library {1} is not installed",
		fix:     "install the package of this system that holds it",
	},
	{
		// The reason names the version that the program was linked against, such as GLIBC_2.38.
		name: "linker-newer-glibc", sign: "GLIBC",
		pattern: "version [`'](GLIBC\\w*_[\\d.]+)' not found",
		reason:  "the program was made for a newer system ({1})",
		fix:     "take one that is made for this system, or run it in a container",
	},
	{
		// A library that is loaded later, by dlopen: the language's own error stands around the text.
		name: "shared-library", sign: "cannot open shared object file",
		pattern: `(\S+?\.so[.\d]*): cannot open shared object file: No such file`,
		reason:  "the shared library {1} is not installed",
		fix:     "install the package of this system that holds it",
	},
	// The shell says this of a script whose interpreter (#!) is missing; the script itself is there.
	{
		name: "shell-missing-interpreter", sign: "cannot execute: required file not found",
		pattern: `(\S+): cannot execute: required file not found`,
		reason:  "{1} asks for an interpreter that is not installed",
		fix:     "see its first line (#!) and install that, or start it with the interpreter that you have",
	},
	{
		// The first line #!/usr/bin/env PROGRAM leads here; GNU and BusyBox quote the name differently.
		name: "env-missing-interpreter", sign: "env: ",
		pattern: `^(?:/usr/bin/|/bin/)?env: (?:‘|'|")?(.+?)(?:’|'|")?: No such file or directory`,
		reason:  "the program {1} is not installed, or not in PATH",
		fix:     "install it, or give its full path",
	},
	{
		// The pattern demands the name of a shell at the beginning: other programs say "not found" of many things.
		name: "shell-missing-command", sign: "not found",
		pattern: `^\S*(?:sh|bash|dash|zsh|ash): (?:line \d+: |\d+: )?(?:exec: )?(\S+): (?:command )?not found$`,
		reason:  "the program {1} is not installed, or not in PATH",
		fix:     "install it, or give its full path; a server's own tools come with npm install in its folder",
	},
	{
		name: "shell-missing-folder", sign: "can't cd to ",
		pattern: `cd: can't cd to (.*)`,
		reason:  "there is no folder {1}, or it may not be entered",
		fix:     "correct the path in \"args\"",
	},
	{
		// A binary of another processor or system.
		name: "shell-wrong-format", sign: "Exec format error",
		pattern: `(\S+): cannot execute binary file: Exec format error`,
		reason:  "{1} is not made for this system",
		fix:     "take the one for this processor and system",
	},
	{
		// The file exists and lacks the x bit, or its file system is mounted noexec.
		name: "shell-not-executable", sign: "Permission denied",
		pattern: `^\S*(?:sh|bash|dash|zsh|ash): (?:line \d+: |\d+: )?(\S+): Permission denied$`,
		reason:  "{1} may not be executed",
		fix:     "allow it (chmod +x), or start it with its interpreter",
	},
	// EADDRINUSE and the next three rows are one failure in the words of Node, Go, Python and other languages.
	{
		// Node writes the code of the system call's error.
		name: "port-taken", sign: "EADDRINUSE",
		pattern: `EADDRINUSE: address already in use (\S+)`,
		reason:  "the program listens on {1}, which is taken",
		fix:     takenFix,
	},
	{
		// Go's net package names the operation and the address.
		name: "port-taken", sign: "bind: address already in use",
		pattern: `listen \w+ (\S+): bind: address already in use`,
		reason:  "the program listens on {1}, which is taken",
		fix:     takenFix,
	},
	{
		// Python's web frameworks and others name the port alone.
		name: "port-taken", sign: "already in use",
		pattern: `\b[Pp]ort (\d+) is already in use`,
		reason:  "the program listens on port <1>, which is taken",
		fix:     takenFix,
	},
	{
		// Every other program repeats the text of EADDRINUSE.
		name: "port-taken", sign: "ddress ",
		pattern: `(?i)\baddress (?:is )?already in use\b`,
		reason:  "the program listens on a port that is taken",
		fix:     takenFix,
	},
	{
		// Ports below 1024 need a privilege on most systems.
		name: "port-denied", sign: "listen EACCES",
		pattern: `listen EACCES: permission denied (\S+)`,
		reason:  "the program may not listen on {1}",
		fix:     "let it use a port above 1023, or standard input and output (stdio)",
	},
	// The next three rows are one failure too; the last has no address, because the words carry none.
	{
		// Node writes this; the next two rows are for Go and for all others.
		name: "connection-refused", sign: "ECONNREFUSED",
		pattern: `connect ECONNREFUSED (\S+)`,
		reason:  "nothing answers at {1}, which the program needs",
		fix:     "start what should listen there, or correct the address in \"env\" or \"args\"",
	},
	{
		// Go's net package names the network and the address.
		name: "connection-refused", sign: "connect: connection refused",
		pattern: `dial \w+ (\S+?): connect: connection refused`,
		reason:  "nothing answers at {1}, which the program needs",
		fix:     "start what should listen there, or correct the address in \"env\" or \"args\"",
	},
	{
		// No address is in the text, so the advice points at standard error.
		name: "connection-refused", sign: "onnection refused",
		pattern: `[Cc]onnection refused`,
		reason:  "something that the program needs does not answer (connection refused)",
		fix:     "standard error names it; start it, or correct its address in \"env\" or \"args\"",
	},
	{
		// ENOTFOUND and EAI_AGAIN of Node; then Go, and Python by the numbers of getaddrinfo.
		name: "unknown-host", sign: "getaddrinfo ",
		pattern: `getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)`,
		reason:  "the host {1}, which the program asks, cannot be looked up",
		fix:     "correct its name in \"env\" or \"args\", or see whether this machine has a network",
	},
	{
		name: "unknown-host", sign: "no such host",
		pattern: `lookup (\S+?)(?: on \S+)?: no such host`,
		reason:  "the host {1}, which the program asks, cannot be looked up",
		fix:     "correct its name in \"env\" or \"args\", or see whether this machine has a network",
	},
	{
		name: "unknown-host", sign: "Errno -",
		pattern: `\[Errno -(?:2|3|5)\] (?:Name or service not known|Temporary failure in name resolution|No address associated with hostname)`,
		reason:  "a host that the program asks cannot be looked up",
		fix:     "correct its name in \"env\" or \"args\", or see whether this machine has a network",
	},
	{
		// Only the uncaught error and its cause: a program may look for many files that need not exist.
		name: "missing-file", sign: "ENOENT: no such file or directory, ",
		pattern: `^(?:\s+\[cause\]: )?Error: ENOENT: no such file or directory, (?:open|stat|lstat|scandir|access|read|realpath) '(.*)'`,
		reason:  "the program needs {1}, which is not there",
		fix:     "make it (often a file of credentials, or the result of a first sign-in), or correct the path in \"env\" or \"args\"",
	},
	{
		// Python writes the number and the text of the error, and the path in quotes.
		name: "missing-file", sign: "No such file or directory: '",
		pattern: `FileNotFoundError: \[Errno 2\] No such file or directory: '(.*)'`,
		reason:  "the program needs {1}, which is not there",
		fix:     "make it (often a file of credentials, or the result of a first sign-in), or correct the path in \"env\" or \"args\"",
	},
	{
		// Go names the operation before the path.
		name: "missing-file", sign: ": no such file or directory",
		pattern: `\b(?:open|stat|lstat) (\S+): no such file or directory`,
		reason:  "the program needs {1}, which is not there",
		fix:     "make it (often a file of credentials, or the result of a first sign-in), or correct the path in \"env\" or \"args\"",
	},
	{
		// Node writes this; Python's text is in the next row.
		name: "file-denied", sign: "EACCES: permission denied, ",
		pattern: `EACCES: permission denied, \w+ '(.*)'`,
		reason:  "the program may not use {1}",
		fix:     deniedFix,
	},
	{
		// Python's Errno 13 is EACCES.
		name: "file-denied", sign: "Permission denied: '",
		pattern: `PermissionError: \[Errno 13\] Permission denied: '(.*)'`,
		reason:  "the program may not use {1}",
		fix:     deniedFix,
	},
	{
		// EROFS: an isolation, or a container with a read-only root.
		name: "read-only", sign: "EROFS: read-only file system",
		pattern: `EROFS: read-only file system, \w+ '(.*)'`,
		reason:  "{1} cannot be written to: its file system is read-only",
		fix:     "let the program write elsewhere (\"env\", \"args\"), or allow it in \"isolation\"",
	},
	{
		// ENOSPC has the same text in all languages.
		name: "disk-full", sign: "o space left on device",
		pattern: `[Nn]o space left on device`,
		reason:  "there is no room left on the disk",
		fix:     "make room, and connect again",
	},
	{
		// EMFILE; the limit is that of the process which started the child.
		name: "too-many-files", sign: "oo many open files",
		pattern: `[Tt]oo many open files`,
		reason:  "the program has more files open than it may",
		fix:     "raise the limit (ulimit -n) where mcpvisor is started",
	},
}

// takenFix and deniedFix are the advice of several rows.
const (
	takenFix  = "end what uses it, or choose another port in \"env\" or \"args\"; a server that is spoken to over stdio seldom needs one"
	deniedFix = "give the user that runs mcpvisor the right to it, or allow it in \"isolation\" if that is set"
)
