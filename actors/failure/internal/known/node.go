package known

// otherNode is the advice where this version of node is too old.
const otherNode = "install a newer node, and let \"command\" name that one"

// node are the failures of programs that run in Node. The rows for missing modules go from the special case to the general one.
var node = []Failure{
	// A path without an importing file is the program itself, from "args".
	{
		Name: "node-missing-file", Sign: "Cannot find module '",
		Pattern: `^Error: Cannot find module '((?:/|[A-Za-z]:\\).*?)'$`,
		Reason:  "node finds no file {1}",
		Fix:     "correct the path in \"args\"; if it is a result of a build, build it (npm install, npm run build)",
	},
	// An absolute or relative path is a file of the program: its build or its package is incomplete.
	{
		Name: "node-missing-own-file", Sign: "Cannot find module '",
		Pattern: `Cannot find module '((?:/|file:|\.|[A-Za-z]:\\).*?)'(?: imported from (.*))?$`,
		Reason:  "the program misses a file of its own, {1}",
		Fix:     "build or install it again; if that does not help, its package is faulty: try another version",
	},
	// A bare name is a package that should have been installed.
	{
		Name: "node-missing-module", Sign: "Cannot find ",
		Pattern: `Cannot find (?:module|package) '(.*?)'`,
		Reason:  "node does not find the module {1}",
		Fix:     "install what the server depends on (npm install in its folder); if npx fetched it, its package is faulty: try another version",
	},
	{
		// node: modules such as node:sqlite appeared in a certain version.
		Name: "node-unknown-builtin", Sign: "No such built-in module: ",
		Pattern: `No such built-in module: (\S+)`,
		Reason:  "this version of node has no module {1}",
		Fix:     otherNode,
	},
	{
		// The option may stand in NODE_OPTIONS as well as in "args".
		Name: "node-bad-option", Sign: "node: bad option: ",
		Pattern: `node: bad option: (\S+)`,
		Reason:  "this version of node does not know the option {1}",
		Fix:     "correct it, or install the version of node that it needs",
	},
	{
		// Node decides by the file's extension and the nearest package.json.
		Name: "node-module-as-script", Sign: "Cannot use import statement outside a module",
		Pattern: `SyntaxError: Cannot use import statement outside a module`,
		Reason:  "node takes an ES module for CommonJS",
		Fix:     "name the built file (often dist/index.js) in \"args\", or set \"type\": \"module\" in the server's package.json",
	},
	{
		// require, module, exports and __dirname exist in CommonJS only.
		Name: "node-script-as-module", Sign: "is not defined in ES module scope",
		Pattern: `ReferenceError: (\w+) is not defined in ES module scope`,
		Reason:  "node takes a CommonJS file for an ES module (<1> is not defined there)",
		Fix:     "rename the file to .cjs, or remove \"type\": \"module\" from the server's package.json",
	},
	{
		// Newer versions of Node can require an ES module, unless that one awaits at its top level (ASYNC_MODULE).
		Name: "node-require-of-module", Sign: "ERR_REQUIRE_",
		Pattern: `\[ERR_REQUIRE_(?:ESM|ASYNC_MODULE)\]`,
		Reason:  "the program requires a package that is an ES module, which this version of node does not do",
		Fix:     "install a newer node or an older version of the server",
	},
	{
		// An import that a newer version of a dependency has renamed or removed.
		Name: "node-missing-export", Sign: "does not provide an export named ",
		Pattern: `The requested module '(.*?)' does not provide an export named '(.*?)'`,
		Reason:  "{1} has nothing of the name {2}: two versions do not fit each other",
		Fix:     "install the server again with the versions that it asks for, or an older or newer one of it",
	},
	{
		// A package with "exports" offers only the paths that it lists.
		Name: "node-path-not-exported", Sign: "ERR_PACKAGE_PATH_NOT_EXPORTED",
		Pattern: `Package subpath '(.*?)' is not defined by "exports" in (.*)[/\\]package\.json`,
		Reason:  "the package in {2} does not offer {1}: two versions do not fit each other",
		Fix:     "install the server again with the versions that it asks for, or an older or newer one of it",
	},
	{
		// This row stands before node-syntax, because both begin with SyntaxError.
		Name: "node-not-json", Sign: "SyntaxError: ",
		Pattern: `^SyntaxError: (Unexpected token .*, .*|Unexpected (?:end of|non-whitespace).* JSON.*|.* in JSON at position.*|.*is not valid JSON.*)`,
		Reason:  "the program reads something that is not JSON (<1>)",
		Fix:     "correct the file or the variable that it reads: the stack in standard error shows which",
	},
	{
		// Node prints the file and the line above the error.
		Name: "node-syntax", Sign: "SyntaxError: ",
		Pattern: `^SyntaxError: ((?:Unexpected|Invalid|missing|Missing) .*)`,
		Reason:  "node cannot read the program (<1>): it is faulty, written for another version, or no JavaScript",
		Fix:     "see the place in standard error; TypeScript must be built, or started with tsx",
	},
	{
		// NODE_MODULE_VERSION is the binary interface of a Node version, which native modules are built for.
		Name: "node-native-module", Sign: "NODE_MODULE_VERSION",
		Pattern: `NODE_MODULE_VERSION (\d+)`,
		Reason:  "a native module was built for another version of node",
		Fix:     "build it again with this one (npm rebuild), or delete the folder and install it again",
	},
	{
		// A node_modules folder that was copied from another system, or was cut short.
		Name: "node-bad-native-module", Sign: ".node: ",
		Pattern: `^Error: (\S+\.node): (file too short|invalid ELF header|wrong ELF class.*|cannot open shared object file.*)`,
		Reason:  "the native module {1} cannot be loaded (<2>)",
		Fix:     "install the server again on this machine: it may have been copied from another one",
	},
	{
		// OpenSSL 3, which Node has since version 17, no longer offers MD4.
		Name: "node-old-hash", Sign: "digital envelope routines::unsupported",
		Pattern: `digital envelope routines::unsupported`,
		Reason:  "the program uses a method of encryption that this version of node has switched off",
		Fix:     "use a newer version of the server, or \"env\": {\"NODE_OPTIONS\": \"--openssl-legacy-provider\"}",
	},
	// Node prints this from V8, then dies by SIGABRT: the actor (endedItself in package actors) lets that signal pass.
	{
		Name: "node-out-of-memory", Sign: "JavaScript heap out of memory",
		Pattern: `JavaScript heap out of memory`,
		Reason:  "node has run out of the memory that it may use",
		Fix:     "allow more: \"env\": {\"NODE_OPTIONS\": \"--max-old-space-size=4096\"} (MB)",
	},
	{
		// Node brings its own list of authorities and ignores that of the system.
		Name: "node-untrusted-certificate", Sign: "certificate",
		Pattern: `^(?:\s+\[cause\]: )?Error: ((?:self.signed certificate|unable to (?:get|verify)|certificate has expired)[\w ,-]*)`,
		Reason:  "the program does not trust the certificate of a host that it asks (<1>)",
		Fix:     "if the host is right, name its authority's file: \"env\": {\"NODE_EXTRA_CA_CERTS\": \"FILE\"}",
	},
}
