package known

// system are messages of shells, the dynamic linker and the kernel, which come from programs in all languages.
var system = []Failure{
	{
		// The dynamic linker (ld.so) ends the program before its first instruction.
		Name: "linker-library", Sign: "error while loading shared libraries: ",
		Pattern: `error while loading shared libraries: (\S+?): cannot open`,
		Reason:  "the shared library {1} is not installed",
		Fix:     "install the package of this system that holds it",
	},
	{
		// The reason names the version that the program was linked against, such as GLIBC_2.38.
		Name: "linker-newer-glibc", Sign: "GLIBC",
		Pattern: "version [`'](GLIBC\\w*_[\\d.]+)' not found",
		Reason:  "the program was made for a newer system ({1})",
		Fix:     "take one that is made for this system, or run it in a container",
	},
	{
		// A library that is loaded later, by dlopen: the language's own error stands around the text.
		Name: "shared-library", Sign: "cannot open shared object file",
		Pattern: `(\S+?\.so[.\d]*): cannot open shared object file: No such file`,
		Reason:  "the shared library {1} is not installed",
		Fix:     "install the package of this system that holds it",
	},
	// The shell says this of a script whose interpreter (#!) is missing; the script itself is there.
	{
		Name: "shell-missing-interpreter", Sign: "cannot execute: required file not found",
		Pattern: `(\S+): cannot execute: required file not found`,
		Reason:  "{1} asks for an interpreter that is not installed",
		Fix:     "see its first line (#!) and install that, or start it with the interpreter that you have",
	},
	{
		// The first line #!/usr/bin/env PROGRAM leads here; GNU and BusyBox quote the name differently.
		Name: "env-missing-interpreter", Sign: "env: ",
		Pattern: `^(?:/usr/bin/|/bin/)?env: (?:‘|'|")?(.+?)(?:’|'|")?: No such file or directory`,
		Reason:  "the program {1} is not installed, or not in PATH",
		Fix:     "install it, or give its full path",
	},
	{
		// The pattern demands the name of a shell at the beginning: other programs say "not found" of many things.
		Name: "shell-missing-command", Sign: "not found",
		Pattern: `^\S*(?:sh|bash|dash|zsh|ash): (?:line \d+: |\d+: )?(?:exec: )?(\S+): (?:command )?not found$`,
		Reason:  "the program {1} is not installed, or not in PATH",
		Fix:     "install it, or give its full path; a server's own tools come with npm install in its folder",
	},
	{
		// dash says "can't cd to"; the folder may hold spaces, so that the pattern takes the rest of the line.
		Name: "shell-missing-folder", Sign: "can't cd to ",
		Pattern: `cd: can't cd to (.*)`,
		Reason:  "there is no folder {1}, or it may not be entered",
		Fix:     "correct the path in \"args\"",
	},
	{
		// A binary of another processor or system.
		Name: "shell-wrong-format", Sign: "Exec format error",
		Pattern: `(\S+): cannot execute binary file: Exec format error`,
		Reason:  "{1} is not made for this system",
		Fix:     "take the one for this processor and system",
	},
	{
		// The file exists and lacks the x bit, or its file system is mounted noexec.
		Name: "shell-not-executable", Sign: "Permission denied",
		Pattern: `^\S*(?:sh|bash|dash|zsh|ash): (?:line \d+: |\d+: )?(\S+): Permission denied$`,
		Reason:  "{1} may not be executed",
		Fix:     "allow it (chmod +x), or start it with its interpreter",
	},
	// EADDRINUSE and the next three rows are one failure in the words of Node, Go, Python and other languages.
	{
		// Node writes the code of the system call's error.
		Name: "port-taken", Sign: "EADDRINUSE",
		Pattern: `EADDRINUSE: address already in use (\S+)`,
		Reason:  "the program listens on {1}, which is taken",
		Fix:     takenFix,
	},
	{
		// Go's net package names the operation and the address.
		Name: "port-taken", Sign: "bind: address already in use",
		Pattern: `listen \w+ (\S+): bind: address already in use`,
		Reason:  "the program listens on {1}, which is taken",
		Fix:     takenFix,
	},
	{
		// Python's web frameworks and others name the port alone.
		Name: "port-taken", Sign: "already in use",
		Pattern: `\b[Pp]ort (\d+) is already in use`,
		Reason:  "the program listens on port <1>, which is taken",
		Fix:     takenFix,
	},
	{
		// Every other program repeats the text of EADDRINUSE.
		Name: "port-taken", Sign: "ddress ",
		Pattern: `(?i)\baddress (?:is )?already in use\b`,
		Reason:  "the program listens on a port that is taken",
		Fix:     takenFix,
	},
	{
		// Ports below 1024 need a privilege on most systems.
		Name: "port-denied", Sign: "listen EACCES",
		Pattern: `listen EACCES: permission denied (\S+)`,
		Reason:  "the program may not listen on {1}",
		Fix:     "let it use a port above 1023, or standard input and output (stdio)",
	},
	// The next three rows are one failure too; the last has no address, because the words carry none.
	{
		// Node writes this; the next two rows are for Go and for all others.
		Name: "connection-refused", Sign: "ECONNREFUSED",
		Pattern: `connect ECONNREFUSED (\S+)`,
		Reason:  "nothing answers at {1}, which the program needs",
		Fix:     "start what should listen there, or correct the address in \"env\" or \"args\"",
	},
	{
		// Go's net package names the network and the address.
		Name: "connection-refused", Sign: "connect: connection refused",
		Pattern: `dial \w+ (\S+?): connect: connection refused`,
		Reason:  "nothing answers at {1}, which the program needs",
		Fix:     "start what should listen there, or correct the address in \"env\" or \"args\"",
	},
	{
		// No address is in the text, so the advice points at standard error.
		Name: "connection-refused", Sign: "onnection refused",
		Pattern: `[Cc]onnection refused`,
		Reason:  "something that the program needs does not answer (connection refused)",
		Fix:     "standard error names it; start it, or correct its address in \"env\" or \"args\"",
	},
	{
		// ENOTFOUND and EAI_AGAIN of Node; then Go, and Python by the numbers of getaddrinfo.
		Name: "unknown-host", Sign: "getaddrinfo ",
		Pattern: `getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)`,
		Reason:  "the host {1}, which the program asks, cannot be looked up",
		Fix:     "correct its name in \"env\" or \"args\", or see whether this machine has a network",
	},
	{
		// Go's net package; the name server stands between the name and the words if one was asked.
		Name: "unknown-host", Sign: "no such host",
		Pattern: `lookup (\S+?)(?: on \S+)?: no such host`,
		Reason:  "the host {1}, which the program asks, cannot be looked up",
		Fix:     "correct its name in \"env\" or \"args\", or see whether this machine has a network",
	},
	{
		// Python has the number of getaddrinfo's error and no name of the host.
		Name: "unknown-host", Sign: "Errno -",
		Pattern: `\[Errno -(?:2|3|5)\] (?:Name or service not known|Temporary failure in name resolution|No address associated with hostname)`,
		Reason:  "a host that the program asks cannot be looked up",
		Fix:     "correct its name in \"env\" or \"args\", or see whether this machine has a network",
	},
	{
		// Only the uncaught error and its cause: a program may look for many files that need not exist.
		Name: "missing-file", Sign: "ENOENT: no such file or directory, ",
		Pattern: `^(?:\s+\[cause\]: )?Error: ENOENT: no such file or directory, (?:open|stat|lstat|scandir|access|read|realpath) '(.*)'`,
		Reason:  "the program needs {1}, which is not there",
		Fix:     "make it (often a file of credentials, or the result of a first sign-in), or correct the path in \"env\" or \"args\"",
	},
	{
		// Python writes the number and the text of the error, and the path in quotes.
		Name: "missing-file", Sign: "No such file or directory: '",
		Pattern: `FileNotFoundError: \[Errno 2\] No such file or directory: '(.*)'`,
		Reason:  "the program needs {1}, which is not there",
		Fix:     "make it (often a file of credentials, or the result of a first sign-in), or correct the path in \"env\" or \"args\"",
	},
	{
		// Go names the operation before the path.
		Name: "missing-file", Sign: ": no such file or directory",
		Pattern: `\b(?:open|stat|lstat) (\S+): no such file or directory`,
		Reason:  "the program needs {1}, which is not there",
		Fix:     "make it (often a file of credentials, or the result of a first sign-in), or correct the path in \"env\" or \"args\"",
	},
	{
		// Node writes this; Python's text is in the next row.
		Name: "file-denied", Sign: "EACCES: permission denied, ",
		Pattern: `EACCES: permission denied, \w+ '(.*)'`,
		Reason:  "the program may not use {1}",
		Fix:     deniedFix,
	},
	{
		// Python's Errno 13 is EACCES.
		Name: "file-denied", Sign: "Permission denied: '",
		Pattern: `PermissionError: \[Errno 13\] Permission denied: '(.*)'`,
		Reason:  "the program may not use {1}",
		Fix:     deniedFix,
	},
	{
		// EROFS: an isolation, or a container with a read-only root.
		Name: "read-only", Sign: "EROFS: read-only file system",
		Pattern: `EROFS: read-only file system, \w+ '(.*)'`,
		Reason:  "{1} cannot be written to: its file system is read-only",
		Fix:     "let the program write elsewhere (\"env\", \"args\"), or allow it in \"isolation\"",
	},
	{
		// ENOSPC has the same text in all languages.
		Name: "disk-full", Sign: "o space left on device",
		Pattern: `[Nn]o space left on device`,
		Reason:  "there is no room left on the disk",
		Fix:     "make room, and connect again",
	},
	{
		// EMFILE; the limit is that of the process which started the child.
		Name: "too-many-files", Sign: "oo many open files",
		Pattern: `[Tt]oo many open files`,
		Reason:  "the program has more files open than it may",
		Fix:     "raise the limit (ulimit -n) where mcpvisor is started",
	},
}

// takenFix and deniedFix are the advice of several rows.
const (
	takenFix  = "end what uses it, or choose another port in \"env\" or \"args\"; a server that is spoken to over stdio seldom needs one"
	deniedFix = "give the user that runs mcpvisor the right to it, or allow it in \"isolation\" if that is set"
)
