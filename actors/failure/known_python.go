package failure

// otherPython and installPip are the advice where another Python, or another environment, is needed.
const (
	otherPython = "install a newer Python (the server's page says which), and let \"command\" name that one"
	installPip  = "install it into the Python that \"command\" names (PYTHON -m pip install PACKAGE), or name the one that has it"
)

// python are the failures of Python, pip and uv.
var python = []knownFailure{
	{
		// Errno 2 is ENOENT; the path is relative to "cwd".
		name: "python-missing-file", sign: "can't open file",
		pattern: `can't open file '(.*)': \[Errno 2\]`,
		reason:  "Python finds no file {1}",
		fix:     "correct the path in \"args\", or \"cwd\"",
	},
	// The row stands before python-missing-module, whose pattern matches this text as well.
	{
		// python -m of a package runs its __main__ module.
		name: "python-not-executable-package", sign: ".__main__; ",
		pattern: `No module named (\S+)\.__main__; `,
		reason:  "the package {1} cannot be started with -m",
		fix:     "name the module of it that is the server, or its program",
	},
	{
		// The module may be the server itself or something that it imports.
		name: "python-missing-module", sign: "No module named ",
		pattern: `No module named '?([\w.]+)'?`,
		reason:  "Python does not find the module {1}",
		fix:     installPip,
	},
	{
		// A dependency has another version than the server was written for.
		name: "python-missing-name", sign: "cannot import name ",
		pattern: `ImportError: cannot import name '(.*?)' from '(.*?)'`,
		reason:  "the module {2} has nothing of the name {1}: two versions do not fit each other",
		fix:     "install the server again with the versions that it asks for",
	},
	// Python names only the key of os.environ; the pattern asks for the form of an environment variable, because any dict may lack a key.
	{
		name: "python-missing-variable", sign: "KeyError: '",
		pattern: `^KeyError: '([A-Z][A-Z0-9]*_[A-Z0-9_]+)'$`,
		reason:  "the program looks for {1} and does not find it",
		fix:     "if that is an environment variable, as its name says, set it: \"env\": {\"<1>\": \"${<1>}\"}",
	},
	// list[int] and similar annotations need Python 3.9.
	{
		name: "python-too-old", sign: "is not subscriptable",
		pattern: `^TypeError: '(?:ABCMeta|type)' object is not subscriptable`,
		reason:  "the program may be written for a newer Python ('type' object is not subscriptable)",
		fix:     otherPython,
	},
	{
		// A newer syntax, such as match, is a syntax error for an older Python.
		name: "python-syntax", sign: "SyntaxError: ",
		pattern: `^SyntaxError: (invalid syntax|expected .*|f-string: .*|invalid decimal literal.*)`,
		reason:  "Python cannot read the program (<1>): the file is faulty, or written for another version",
		fix:     "see the place in standard error; if the server asks for a newer Python, let \"command\" name one",
	},
	{
		// argparse prints the usage first and this line last.
		name: "python-missing-argument", sign: "the following arguments are required: ",
		pattern: `error: the following arguments are required: (.*)`,
		reason:  "the program misses the arguments {1}",
		fix:     "add them to \"args\"",
	},
	{
		// argparse names what it does not know, after the usage.
		name: "python-unknown-argument", sign: "error: unrecognized arguments: ",
		pattern: `error: unrecognized arguments: (.*)`,
		reason:  "the program does not know the arguments {1}",
		fix:     "correct \"args\": --help of the program shows what it takes",
	},
	{
		// OpenSSL gives the reason before the place in its own source, which is cut off.
		name: "python-certificate", sign: "CERTIFICATE_VERIFY_FAILED",
		pattern: `CERTIFICATE_VERIFY_FAILED\] certificate verify failed: (.*?) \(`,
		reason:  "the program does not trust the certificate of a host that it asks (<1>)",
		fix:     "if the host is right, name its authority's file: \"env\": {\"SSL_CERT_FILE\": \"FILE\"}",
	},
	{
		// Without a terminal Python chooses its encoding by the locale, which may be ASCII.
		name: "python-encoding", sign: "UnicodeEncodeError: ",
		pattern: `UnicodeEncodeError: '(.*?)' codec can't encode`,
		reason:  "Python writes in the encoding <1>, which has no sign for what it writes",
		fix:     "let it write UTF-8: \"env\": {\"PYTHONIOENCODING\": \"utf-8\"}",
	},
	{
		// Python prints the name of the exception alone.
		name: "python-out-of-memory", sign: "MemoryError",
		pattern: `^MemoryError`,
		reason:  "Python has no memory left",
		fix:     "give the machine, the container or \"isolation\" more memory, or let the server do less",
	},
	{
		// PEP 668: distributions mark their Python so that pip does not change it.
		name: "python-managed-environment", sign: "externally-managed-environment",
		pattern: `error: externally-managed-environment`,
		reason:  "pip may not install into the Python of this system",
		fix:     "start the server with uvx or pipx run, or from a virtual environment",
	},
	{
		// pip says the same for a name that does not exist and for a package without a version for this Python.
		name: "pip-no-distribution", sign: "No matching distribution found for ",
		pattern: `No matching distribution found for (\S+)`,
		reason:  "pip finds no package {1} that fits this Python",
		fix:     "correct its name or version; some need a newer Python",
	},
	{
		// uv writes a proof in several lines; this is its first premise.
		name: "uv-unknown-package", sign: "was not found in the package registry",
		pattern: `Because (\S+) was not found in the package registry`,
		reason:  "uv finds no package {1}",
		fix:     "correct its name in \"args\"",
	},
	{
		// uvx runs the program that has the package's name, unless --from names another package.
		name: "uv-no-executable", sign: "An executable named ",
		pattern: "An executable named `(.*?)` is not provided by package `(.*?)`",
		reason:  "the package {2} has no program {1}",
		fix:     "name the one that it has: \"args\": [\"--from\", \"PACKAGE\", \"PROGRAM\"]",
	},
	{
		// uv run needs a project, or a script, in the working directory.
		name: "uv-missing-project", sign: "No `pyproject.toml` found",
		pattern: "No `pyproject.toml` found",
		reason:  "uv finds no project in its folder",
		fix:     "name the server's folder: \"args\": [\"--directory\", \"FOLDER\", \"run\", …], or correct \"cwd\"",
	},
	{
		// The next line has the system's reason, which is seldom more than "not found".
		name: "uv-cannot-start", sign: "Failed to spawn: ",
		pattern: "Failed to spawn: `(.*?)`",
		reason:  "uv cannot start {1}",
		fix:     "see whether the project has a program or a file of this name, and correct \"args\"",
	},
}
