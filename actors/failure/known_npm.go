package failure

// netFix and tlsFix are the advice where npm cannot reach its registry, or does not trust it.
const (
	netFix = "see whether this machine reaches it: the network, and the proxy (HTTPS_PROXY) if there is one"
	tlsFix = "if a proxy of your company signs it, name its authority's file: \"env\": {\"NODE_EXTRA_CA_CERTS\": \"FILE\"}"

	// folder matches a path that is safe to paste into a shell: the advice tells a person to delete it.
	folder = "[^'\"`$;&|<>\n]*"
	// npx takes a folder whose installation was cut short for complete, so every later start fails in the same way.
	cutShort    = "an installation in npx's cache was cut short, and every start fails until its folder is deleted"
	cutShortFix = "delete {1}, then connect again"
)

// npm are the failures of npx and npm, before the server itself has started.
var npm = []knownFailure{
	{
		// The registry answers 404 for a private package as well as for a missing one.
		name: "npm-unknown-package", sign: " 404 ",
		pattern: `404\s+(?:The requested resource )?'(.+?)@[^@']*' (?:could not be found|is not in this registry)`,
		reason:  "npm finds no package {1}, or may not see it",
		fix:     "correct the package's name in \"args\"; if it is a private one, sign in to its registry with npm login",
	},
	{
		// ETARGET: the package exists, and none of its versions fits.
		name: "npm-unknown-version", sign: "No matching version found for ",
		pattern: `No matching version found for (\S+?)\.?$`,
		reason:  "npm finds no version that fits {1}",
		fix:     "choose a version that exists (npm view PACKAGE versions), or leave it out of \"args\"",
	},
	{
		// A package that is a library has no program in its package.json.
		name: "npm-no-executable", sign: "could not determine executable to run",
		pattern: `could not determine executable to run`,
		reason:  "npx was not told which program to start: the package has none, or several and none of the package's name",
		fix:     "see whether the package is a server and not a library; name the program: \"args\": [\"-y\", \"-p\", \"PACKAGE\", \"PROGRAM\"]",
	},
	// Without a terminal npx cannot ask its question, so it refuses.
	{
		name: "npm-not-installed", sign: "npx canceled",
		pattern: `npx canceled due to missing packages and no YES option: \["(.+?)"`,
		reason:  "npx may not install {1}: nobody can answer its question",
		fix:     "put \"-y\" first in \"args\"",
	},
	{
		// npm says this for a token in .npmrc that has expired, and for none.
		name: "npm-cannot-authenticate", sign: "Unable to authenticate",
		pattern: `Unable to authenticate`,
		reason:  "the npm registry does not accept the login of this machine, or misses one",
		fix:     "sign in with npm login to the registry that .npmrc names",
	},
	{
		// A registry of a company answers 403 for blocked packages.
		name: "npm-forbidden", sign: "403 ",
		pattern: `403 (?:403 )?Forbidden - GET (\S+)`,
		reason:  "the npm registry refuses {1} (403)",
		fix:     "ask whoever runs that registry whether the package is blocked, or you may not see it",
	},
	{
		// 5xx is the registry's own trouble, or that of a proxy before it.
		name: "npm-registry-fails", sign: " - GET ",
		pattern: `(5\d\d [A-Z][\w ]+) - GET (\S+)`,
		reason:  "the npm registry cannot answer {2} (<1>)",
		fix:     "try again later, or name another registry in .npmrc",
	},
	// The rows for certificates come before npm-unreachable, whose pattern matches any reason.
	{
		name: "npm-certificate", sign: ", reason: ",
		pattern: `request to (\S+) failed, reason: ((?:self.signed|unable to (?:get|verify)|certificate)[\w ,-]*)`,
		reason:  "npm does not trust the certificate of {1} (<2>)",
		fix:     tlsFix,
	},
	{
		// ECONNREFUSED, ENOTFOUND, timeouts: the reason of the system is repeated in the text.
		name: "npm-unreachable", sign: ", reason: ",
		pattern: `request to (\S+) failed, reason: (.*)`,
		reason:  "npm cannot reach {1} (<2>)",
		fix:     netFix,
	},
	{
		// npm was started with --offline, or its configuration says so.
		name: "npm-offline", sign: "only-if-cached",
		pattern: `request to (\S+) failed: cache mode is 'only-if-cached'`,
		reason:  "npm is told to stay offline, and its cache does not hold {1}",
		fix:     "leave --offline out once, while there is a network",
	},
	{
		// The row demands npm's own mark, because a server may report a full disk as well.
		name: "npm-disk-full", sign: "ENOSPC",
		pattern: `npm (?:error|ERR!).* ENOSPC: no space left on device`,
		reason:  "npm has no room on the disk to install",
		fix:     "make room, or see what npm cache clean --force gives back",
	},
	{
		// sudo npm leaves files of root in the user's cache.
		name: "npm-foreign-cache", sign: "Your cache folder contains root-owned files",
		pattern: `Your cache folder contains root-owned files`,
		reason:  "npm may not write to its cache: files in it belong to root",
		fix:     "give them back: sudo chown -R $(id -u):$(id -g) ~/.npm",
	},
	{
		// The reason follows the URL that npm was fetching, which is of no interest here.
		name: "npm-cache-unwritable", sign: "Invalid response body while trying to fetch",
		pattern: `Invalid response body while trying to fetch .*: (E[A-Z]+: [a-z ,-]+, (?:mkdir|open|write|rename|symlink|link)(?: '.*')?)`,
		reason:  "npm cannot write to its cache (<1>)",
		fix:     "see whether that folder may be written to, or choose another: \"env\": {\"npm_config_cache\": \"FOLDER\"}",
	},
	{
		// npx reads package.json of its folder before anything else; the folder's name is a hash of the packages.
		name: "npx-cache-broken", sign: "_npx",
		pattern: `ENOENT: no such file or directory, open '(` + folder + `[/\\]_npx[/\\][0-9a-f]{16})[/\\]package\.json'`,
		reason:  cutShort,
		fix:     cutShortFix,
	},
	{
		// npm renames folders while it installs; a leftover of an earlier run is in the way.
		name: "npx-cache-broken", sign: "ENOTEMPTY: directory not empty",
		pattern: `ENOTEMPTY: directory not empty, rename '(` + folder + `[/\\]_npx[/\\][0-9a-f]{16})[/\\]`,
		reason:  cutShort,
		fix:     cutShortFix,
	},
	{
		// npm run and npm start look for it in their working directory only.
		name: "npm-no-package-json", sign: "Could not read package.json",
		pattern: `Could not read package\.json: Error: ENOENT: .* open '(.*)[/\\]package\.json'`,
		reason:  "npm finds no package.json in {1}",
		fix:     "correct \"cwd\" or the path in \"args\"",
	},
	{
		// The text of the parser names the place.
		name: "npm-bad-package-json", sign: "JSON.parse Invalid package.json",
		pattern: `JSON\.parse Invalid package\.json: (.*)`,
		reason:  "package.json of the server's folder is not JSON (<1>)",
		fix:     "correct it",
	},
	{
		// npm run lists the scripts itself, so the advice points there.
		name: "npm-missing-script", sign: "Missing script: ",
		pattern: `Missing script: "(.*)"`,
		reason:  "package.json has no script {1}",
		fix:     "npm run shows those that it has; correct \"args\", or \"cwd\" if it is another project's",
	},
	{
		// A dependency with a git URL is cloned.
		name: "npm-no-git", sign: "syscall spawn git",
		pattern: `syscall spawn git`,
		reason:  "npm needs git to fetch this package, and does not find it",
		fix:     "install git, or take the package from a registry",
	},
	{
		// npm refuses only with engine-strict; otherwise it warns and the program fails later.
		name: "npm-wrong-engine", sign: "Not compatible with your version",
		pattern: `notsup Not compatible with your version of node/npm: (\S+)`,
		reason:  "{1} asks for another version of node",
		fix:     "install the version that it asks for (npm view PACKAGE engines), and let \"command\" name that one's npx",
	},
	// npm's own text names the system that the package wants, which is of no use to this person; the fix names theirs.
	{
		name: "npm-wrong-system", sign: "Unsupported platform for ",
		pattern: `Unsupported platform for (\S+?): wanted (.*?) \(current: (.*)\)$`,
		reason:  "{1} is not made for this system",
		fix:     "choose a package for this one (<3>)",
	},
	{
		// The script's own error stands above this line, because npm prints the command last.
		name: "npm-install-script", sign: " command sh -c ",
		pattern: `npm (?:error|ERR!) command sh -c (.*)`,
		reason:  "a script of a package failed while npm installed it: {1}",
		fix:     "see the lines of standard error above it; install what it misses, or another version of the package",
	},
}
