package known

// otherPython and installPip are the advice where another Python, or another environment, is needed.
const (
	otherPython = "install a newer Python (the server's page says which), and let \"command\" name that one"
	installPip  = "install it into the Python that \"command\" names (PYTHON -m pip install PACKAGE), or name the one that has it"
)

// python are the failures of Python, pip and uv.
var python = []Failure{
	{
		// Errno 2 is ENOENT; the path is relative to "cwd".
		Name: "python-missing-file", Sign: "can't open file",
		Pattern: `can't open file '(.*)': \[Errno 2\]`,
		Reason:  "Python finds no file {1}",
		Fix:     "correct the path in \"args\", or \"cwd\"",
	},
	// The row stands before python-missing-module, whose pattern matches this text as well.
	{
		// python -m of a package runs its __main__ module.
		Name: "python-not-executable-package", Sign: ".__main__; ",
		Pattern: `No module named (\S+)\.__main__; `,
		Reason:  "the package {1} cannot be started with -m",
		Fix:     "name the module of it that is the server, or its program",
	},
	{
		// The module may be the server itself or something that it imports.
		Name: "python-missing-module", Sign: "No module named ",
		Pattern: `No module named '?([\w.]+)'?`,
		Reason:  "Python does not find the module {1}",
		Fix:     installPip,
	},
	{
		// A dependency has another version than the server was written for.
		Name: "python-missing-name", Sign: "cannot import name ",
		Pattern: `ImportError: cannot import name '(.*?)' from '(.*?)'`,
		Reason:  "the module {2} has nothing of the name {1}: two versions do not fit each other",
		Fix:     "install the server again with the versions that it asks for",
	},
	// Python names only the key of os.environ; the pattern asks for the form of an environment variable, because any dict may
	// lack a key.
	{
		Name: "python-missing-variable", Sign: "KeyError: '",
		Pattern: `^KeyError: '([A-Z][A-Z0-9]*_[A-Z0-9_]+)'$`,
		Reason:  "the program looks for {1} and does not find it",
		Fix:     "if that is an environment variable, as its name says, set it: \"env\": {\"<1>\": \"${<1>}\"}",
	},
	// list[int] and similar annotations need Python 3.9.
	{
		Name: "python-too-old", Sign: "is not subscriptable",
		Pattern: `^TypeError: '(?:ABCMeta|type)' object is not subscriptable`,
		Reason:  "the program may be written for a newer Python ('type' object is not subscriptable)",
		Fix:     otherPython,
	},
	{
		// A newer syntax, such as match, is a syntax error for an older Python.
		Name: "python-syntax", Sign: "SyntaxError: ",
		Pattern: `^SyntaxError: (invalid syntax|expected .*|f-string: .*|invalid decimal literal.*)`,
		Reason:  "Python cannot read the program (<1>): the file is faulty, or written for another version",
		Fix:     "see the place in standard error; if the server asks for a newer Python, let \"command\" name one",
	},
	{
		// argparse prints the usage first and this line last.
		Name: "python-missing-argument", Sign: "the following arguments are required: ",
		Pattern: `error: the following arguments are required: (.*)`,
		Reason:  "the program misses the arguments {1}",
		Fix:     "add them to \"args\"",
	},
	{
		// argparse names what it does not know, after the usage.
		Name: "python-unknown-argument", Sign: "error: unrecognized arguments: ",
		Pattern: `error: unrecognized arguments: (.*)`,
		Reason:  "the program does not know the arguments {1}",
		Fix:     "correct \"args\": --help of the program shows what it takes",
	},
	{
		// OpenSSL gives the reason before the place in its own source, which is cut off.
		Name: "python-certificate", Sign: "CERTIFICATE_VERIFY_FAILED",
		Pattern: `CERTIFICATE_VERIFY_FAILED\] certificate verify failed: (.*?) \(`,
		Reason:  "the program does not trust the certificate of a host that it asks (<1>)",
		Fix:     "if the host is right, name its authority's file: \"env\": {\"SSL_CERT_FILE\": \"FILE\"}",
	},
	{
		// Without a terminal Python chooses its encoding by the locale, which may be ASCII.
		Name: "python-encoding", Sign: "UnicodeEncodeError: ",
		Pattern: `UnicodeEncodeError: '(.*?)' codec can't encode`,
		Reason:  "Python writes in the encoding <1>, which has no sign for what it writes",
		Fix:     "let it write UTF-8: \"env\": {\"PYTHONIOENCODING\": \"utf-8\"}",
	},
	{
		// Python prints the name of the exception alone.
		Name: "python-out-of-memory", Sign: "MemoryError",
		Pattern: `^MemoryError`,
		Reason:  "Python has no memory left",
		Fix:     "give the machine, the container or \"isolation\" more memory, or let the server do less",
	},
	{
		// PEP 668: distributions mark their Python so that pip does not change it.
		Name: "python-managed-environment", Sign: "externally-managed-environment",
		Pattern: `error: externally-managed-environment`,
		Reason:  "pip may not install into the Python of this system",
		Fix:     "start the server with uvx or pipx run, or from a virtual environment",
	},
	{
		// pip says the same for a name that does not exist and for a package without a version for this Python.
		Name: "pip-no-distribution", Sign: "No matching distribution found for ",
		Pattern: `No matching distribution found for (\S+)`,
		Reason:  "pip finds no package {1} that fits this Python",
		Fix:     "correct its name or version; some need a newer Python",
	},
	{
		// uv writes a proof in several lines; this is its first premise.
		Name: "uv-unknown-package", Sign: "was not found in the package registry",
		Pattern: `Because (\S+) was not found in the package registry`,
		Reason:  "uv finds no package {1}",
		Fix:     "correct its name in \"args\"",
	},
	{
		// uvx runs the program that has the package's name, unless --from names another package.
		Name: "uv-no-executable", Sign: "An executable named ",
		Pattern: "An executable named `(.*?)` is not provided by package `(.*?)`",
		Reason:  "the package {2} has no program {1}",
		Fix:     "name the one that it has: \"args\": [\"--from\", \"PACKAGE\", \"PROGRAM\"]",
	},
	{
		// uv run needs a project, or a script, in the working directory.
		Name: "uv-missing-project", Sign: "No `pyproject.toml` found",
		Pattern: "No `pyproject.toml` found",
		Reason:  "uv finds no project in its folder",
		Fix:     "name the server's folder: \"args\": [\"--directory\", \"FOLDER\", \"run\", …], or correct \"cwd\"",
	},
	{
		// The next line has the system's reason, which is seldom more than "not found".
		Name: "uv-cannot-start", Sign: "Failed to spawn: ",
		Pattern: "Failed to spawn: `(.*?)`",
		Reason:  "uv cannot start {1}",
		Fix:     "see whether the project has a program or a file of this name, and correct \"args\"",
	},
}
