package failure

// otherNode is the advice where this version of node is too old.
const otherNode = "install a newer node, and let \"command\" name that one"

// node are the failures of programs that run in Node. The rows for missing modules go from the special case to the general one.
var node = []knownFailure{
	// A path without an importing file is the program itself, from "args".
	{
		name: "node-missing-file", sign: "Cannot find module '",
		pattern: `^Error: Cannot find module '((?:/|[A-Za-z]:\\).*?)'$`,
		reason:  "node finds no file {1}",
		fix:     "correct the path in \"args\"; if it is a result of a build, build it (npm install, npm run build)",
	},
	// An absolute or relative path is a file of the program: its build or its package is incomplete.
	{
		name: "node-missing-own-file", sign: "Cannot find module '",
		pattern: `Cannot find module '((?:/|file:|\.|[A-Za-z]:\\).*?)'(?: imported from (.*))?$`,
		reason:  "the program misses a file of its own, {1}",
		fix:     "build or install it again; if that does not help, its package is faulty: try another version",
	},
	// A bare name is a package that should have been installed.
	{
		name: "node-missing-module", sign: "Cannot find ",
		pattern: `Cannot find (?:module|package) '(.*?)'`,
		reason:  "node does not find the module {1}",
		fix:     "install what the server depends on (npm install in its folder); if npx fetched it, its package is faulty: try another version",
	},
	{
		// node: modules such as node:sqlite appeared in a certain version.
		name: "node-unknown-builtin", sign: "No such built-in module: ",
		pattern: `No such built-in module: (\S+)`,
		reason:  "this version of node has no module {1}",
		fix:     otherNode,
	},
	{
		// The option may stand in NODE_OPTIONS as well as in "args".
		name: "node-bad-option", sign: "node: bad option: ",
		pattern: `node: bad option: (\S+)`,
		reason:  "this version of node does not know the option {1}",
		fix:     "correct it, or install the version of node that it needs",
	},
	{
		// Node decides by the file's extension and the nearest package.json.
		name: "node-module-as-script", sign: "Cannot use import statement outside a module",
		pattern: `SyntaxError: Cannot use import statement outside a module`,
		reason:  "node takes an ES module for CommonJS",
		fix:     "name the built file (often dist/index.js) in \"args\", or set \"type\": \"module\" in the server's package.json",
	},
	{
		// require, module, exports and __dirname exist in CommonJS only.
		name: "node-script-as-module", sign: "is not defined in ES module scope",
		pattern: `ReferenceError: (\w+) is not defined in ES module scope`,
		reason:  "node takes a CommonJS file for an ES module (<1> is not defined there)",
		fix:     "rename the file to .cjs, or remove \"type\": \"module\" from the server's package.json",
	},
	{
		// Newer versions of Node can require an ES module, unless that one awaits at its top level (ASYNC_MODULE).
		name: "node-require-of-module", sign: "ERR_REQUIRE_",
		pattern: `\[ERR_REQUIRE_(?:ESM|ASYNC_MODULE)\]`,
		reason:  "the program requires a package that is an ES module, which this version of node does not do",
		fix:     "install a newer node or an older version of the server",
	},
	{
		// An import that a newer version of a dependency has renamed or removed.
		name: "node-missing-export", sign: "does not provide an export named ",
		pattern: `The requested module '(.*?)' does not provide an export named '(.*?)'`,
		reason:  "{1} has nothing of the name {2}: two versions do not fit each other",
		fix:     "install the server again with the versions that it asks for, or an older or newer one of it",
	},
	{
		// A package with "exports" offers only the paths that it lists.
		name: "node-path-not-exported", sign: "ERR_PACKAGE_PATH_NOT_EXPORTED",
		pattern: `Package subpath '(.*?)' is not defined by "exports" in (.*)[/\\]package\.json`,
		reason:  "the package in {2} does not offer {1}: two versions do not fit each other",
		fix:     "install the server again with the versions that it asks for, or an older or newer one of it",
	},
	{
		// This row stands before node-syntax, because both begin with SyntaxError.
		name: "node-not-json", sign: "SyntaxError: ",
		pattern: `^SyntaxError: (Unexpected token .*, .*|Unexpected (?:end of|non-whitespace).* JSON.*|.* in JSON at position.*|.*is not valid JSON.*)`,
		reason:  "the program reads something that is not JSON (<1>)",
		fix:     "correct the file or the variable that it reads: the stack in standard error shows which",
	},
	{
		// Node prints the file and the line above the error.
		name: "node-syntax", sign: "SyntaxError: ",
		pattern: `^SyntaxError: ((?:Unexpected|Invalid|missing|Missing) .*)`,
		reason:  "node cannot read the program (<1>): it is faulty, written for another version, or no JavaScript",
		fix:     "see the place in standard error; TypeScript must be built, or started with tsx",
	},
	{
		// NODE_MODULE_VERSION is the binary interface of a Node version, which native modules are built for.
		name: "node-native-module", sign: "NODE_MODULE_VERSION",
		pattern: `NODE_MODULE_VERSION (\d+)`,
		reason:  "a native module was built for another version of node",
		fix:     "build it again with this one (npm rebuild), or delete the folder and install it again",
	},
	{
		// A node_modules folder that was copied from another system, or was cut short.
		name: "node-bad-native-module", sign: ".node: ",
		pattern: `^Error: (\S+\.node): (file too short|invalid ELF header|wrong ELF class.*|cannot open shared object file.*)`,
		reason:  "the native module {1} cannot be loaded (<2>)",
		fix:     "install the server again on this machine: it may have been copied from another one",
	},
	{
		// OpenSSL 3, which Node has since version 17, no longer offers MD4.
		name: "node-old-hash", sign: "digital envelope routines::unsupported",
		pattern: `digital envelope routines::unsupported`,
		reason:  "the program uses a method of encryption that this version of node has switched off",
		fix:     "use a newer version of the server, or \"env\": {\"NODE_OPTIONS\": \"--openssl-legacy-provider\"}",
	},
	// Node prints this from V8, then dies by SIGABRT: endedItself in package actors lets that signal pass.
	{
		name: "node-out-of-memory", sign: "JavaScript heap out of memory",
		pattern: `JavaScript heap out of memory`,
		reason:  "node has run out of the memory that it may use",
		fix:     "allow more: \"env\": {\"NODE_OPTIONS\": \"--max-old-space-size=4096\"} (MB)",
	},
	{
		// Node brings its own list of authorities and ignores that of the system.
		name: "node-untrusted-certificate", sign: "certificate",
		pattern: `^(?:\s+\[cause\]: )?Error: ((?:self.signed certificate|unable to (?:get|verify)|certificate has expired)[\w ,-]*)`,
		reason:  "the program does not trust the certificate of a host that it asks (<1>)",
		fix:     "if the host is right, name its authority's file: \"env\": {\"NODE_EXTRA_CA_CERTS\": \"FILE\"}",
	},
}
