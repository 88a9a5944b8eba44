package known

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
var npm = []Failure{
	{
		// The registry answers 404 for a private package as well as for a missing one.
		Name: "npm-unknown-package", Sign: " 404 ",
		Pattern: `404\s+(?:The requested resource )?'(.+?)@[^@']*' (?:could not be found|is not in this registry)`,
		Reason:  "npm finds no package {1}, or may not see it",
		Fix:     "correct the package's name in \"args\"; if it is a private one, sign in to its registry with npm login",
	},
	{
		// ETARGET: the package exists, and none of its versions fits.
		Name: "npm-unknown-version", Sign: "No matching version found for ",
		Pattern: `No matching version found for (\S+?)\.?$`,
		Reason:  "npm finds no version that fits {1}",
		Fix:     "choose a version that exists (npm view PACKAGE versions), or leave it out of \"args\"",
	},
	{
		// A package that is a library has no program in its package.json.
		Name: "npm-no-executable", Sign: "could not determine executable to run",
		Pattern: `could not determine executable to run`,
		Reason:  "npx was not told which program to start: the package has none, or several and none of the package's name",
		Fix:     "see whether the package is a server and not a library; name the program: \"args\": [\"-y\", \"-p\", \"PACKAGE\", \"PROGRAM\"]",
	},
	// Without a terminal npx cannot ask its question, so it refuses.
	{
		Name: "npm-not-installed", Sign: "npx canceled",
		Pattern: `npx canceled due to missing packages and no YES option: \["(.+?)"`,
		Reason:  "npx may not install {1}: nobody can answer its question",
		Fix:     "put \"-y\" first in \"args\"",
	},
	{
		// npm says this for a token in .npmrc that has expired, and for none.
		Name: "npm-cannot-authenticate", Sign: "Unable to authenticate",
		Pattern: `Unable to authenticate`,
		Reason:  "the npm registry does not accept the login of this machine, or misses one",
		Fix:     "sign in with npm login to the registry that .npmrc names",
	},
	{
		// A registry of a company answers 403 for blocked packages.
		Name: "npm-forbidden", Sign: "403 ",
		Pattern: `403 (?:403 )?Forbidden - GET (\S+)`,
		Reason:  "the npm registry refuses {1} (403)",
		Fix:     "ask whoever runs that registry whether the package is blocked, or you may not see it",
	},
	{
		// 5xx is the registry's own trouble, or that of a proxy before it.
		Name: "npm-registry-fails", Sign: " - GET ",
		Pattern: `(5\d\d [A-Z][\w ]+) - GET (\S+)`,
		Reason:  "the npm registry cannot answer {2} (<1>)",
		Fix:     "try again later, or name another registry in .npmrc",
	},
	// The rows for certificates come before npm-unreachable, whose pattern matches any reason.
	{
		Name: "npm-certificate", Sign: ", reason: ",
		Pattern: `request to (\S+) failed, reason: ((?:self.signed|unable to (?:get|verify)|certificate)[\w ,-]*)`,
		Reason:  "npm does not trust the certificate of {1} (<2>)",
		Fix:     tlsFix,
	},
	{
		// ECONNREFUSED, ENOTFOUND, timeouts: the reason of the system is repeated in the text.
		Name: "npm-unreachable", Sign: ", reason: ",
		Pattern: `request to (\S+) failed, reason: (.*)`,
		Reason:  "npm cannot reach {1} (<2>)",
		Fix:     netFix,
	},
	{
		// npm was started with --offline, or its configuration says so.
		Name: "npm-offline", Sign: "only-if-cached",
		Pattern: `request to (\S+) failed: cache mode is 'only-if-cached'`,
		Reason:  "npm is told to stay offline, and its cache does not hold {1}",
		Fix:     "leave --offline out once, while there is a network",
	},
	{
		// The row demands npm's own mark, because a server may report a full disk as well.
		Name: "npm-disk-full", Sign: "ENOSPC",
		Pattern: `npm (?:error|ERR!).* ENOSPC: no space left on device`,
		Reason:  "npm has no room on the disk to install",
		Fix:     "make room, or see what npm cache clean --force gives back",
	},
	{
		// sudo npm leaves files of root in the user's cache.
		Name: "npm-foreign-cache", Sign: "Your cache folder contains root-owned files",
		Pattern: `Your cache folder contains root-owned files`,
		Reason:  "npm may not write to its cache: files in it belong to root",
		Fix:     "give them back: sudo chown -R $(id -u):$(id -g) ~/.npm",
	},
	{
		// The reason follows the URL that npm was fetching, which is of no interest here.
		Name: "npm-cache-unwritable", Sign: "Invalid response body while trying to fetch",
		Pattern: `Invalid response body while trying to fetch .*: (E[A-Z]+: [a-z ,-]+, (?:mkdir|open|write|rename|symlink|link)(?: '.*')?)`,
		Reason:  "npm cannot write to its cache (<1>)",
		Fix:     "see whether that folder may be written to, or choose another: \"env\": {\"npm_config_cache\": \"FOLDER\"}",
	},
	{
		// npx reads package.json of its folder before anything else; the folder's name is a hash of the packages.
		Name: "npx-cache-broken", Sign: "_npx",
		Pattern: `ENOENT: no such file or directory, open '(` + folder + `[/\\]_npx[/\\][0-9a-f]{16})[/\\]package\.json'`,
		Reason:  cutShort,
		Fix:     cutShortFix,
	},
	{
		// npm renames folders while it installs; a leftover of an earlier run is in the way.
		Name: "npx-cache-broken", Sign: "ENOTEMPTY: directory not empty",
		Pattern: `ENOTEMPTY: directory not empty, rename '(` + folder + `[/\\]_npx[/\\][0-9a-f]{16})[/\\]`,
		Reason:  cutShort,
		Fix:     cutShortFix,
	},
	{
		// npm run and npm start look for it in their working directory only.
		Name: "npm-no-package-json", Sign: "Could not read package.json",
		Pattern: `Could not read package\.json: Error: ENOENT: .* open '(.*)[/\\]package\.json'`,
		Reason:  "npm finds no package.json in {1}",
		Fix:     "correct \"cwd\" or the path in \"args\"",
	},
	{
		// The text of the parser names the place.
		Name: "npm-bad-package-json", Sign: "JSON.parse Invalid package.json",
		Pattern: `JSON\.parse Invalid package\.json: (.*)`,
		Reason:  "package.json of the server's folder is not JSON (<1>)",
		Fix:     "correct it",
	},
	{
		// npm run lists the scripts itself, so the advice points there.
		Name: "npm-missing-script", Sign: "Missing script: ",
		Pattern: `Missing script: "(.*)"`,
		Reason:  "package.json has no script {1}",
		Fix:     "npm run shows those that it has; correct \"args\", or \"cwd\" if it is another project's",
	},
	{
		// A dependency with a git URL is cloned.
		Name: "npm-no-git", Sign: "syscall spawn git",
		Pattern: `syscall spawn git`,
		Reason:  "npm needs git to fetch this package, and does not find it",
		Fix:     "install git, or take the package from a registry",
	},
	{
		// npm refuses only with engine-strict; otherwise it warns and the program fails later.
		Name: "npm-wrong-engine", Sign: "Not compatible with your version",
		Pattern: `notsup Not compatible with your version of node/npm: (\S+)`,
		Reason:  "{1} asks for another version of node",
		Fix:     "install the version that it asks for (npm view PACKAGE engines), and let \"command\" name that one's npx",
	},
	// npm's own text names the system that the package wants, which is of no use to this person; the fix names theirs.
	{
		Name: "npm-wrong-system", Sign: "Unsupported platform for ",
		Pattern: `Unsupported platform for (\S+?): wanted (.*?) \(current: (.*)\)$`,
		Reason:  "{1} is not made for this system",
		Fix:     "choose a package for this one (<3>)",
	},
	{
		// The script's own error stands above this line, because npm prints the command last.
		Name: "npm-install-script", Sign: " command sh -c ",
		Pattern: `npm (?:error|ERR!) command sh -c (.*)`,
		Reason:  "a script of a package failed while npm installed it: {1}",
		Fix:     "see the lines of standard error above it; install what it misses, or another version of the package",
	},
}
