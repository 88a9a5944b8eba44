package failure

import "strings"

// programs are messages that servers themselves write for the person: a key is missing, an argument, a folder. They come last,
// because their words are the least certain.
var programs = []knownFailure{
	// Servers ask for variables in many words, so a function looks for a name and a demand in one line.
	{
		name: "missing-variable", sign: "_", match: missingVariable,
		fix: variableFix,
	},
	{
		// pydantic prints the class first and one line for each field after it.
		name: "pydantic-settings", sign: "validation error",
		pattern: `ValidationError: \d+ validation errors? for (\w+)`,
		reason:  "a setting of the program ({1}) is missing or not valid",
		fix:     "the lines below it in standard error name the fields; set them in \"env\"",
	},
	{
		// Libraries for options in many languages use these words.
		name: "unknown-option", sign: "option",
		pattern: `(?i)unknown option:? ['"]?(--?[\w-]+)`,
		reason:  "the program does not know the option {1}",
		fix:     "correct \"args\": --help of the program shows what it takes",
	},
	{
		// The libraries cobra and pflag of Go use these words.
		name: "unknown-option", sign: "unknown flag: ",
		pattern: `unknown flag: (--?[\w-]+)`,
		reason:  "the program does not know the option {1}",
		fix:     "correct \"args\": --help of the program shows what it takes",
	},
	{
		// The reference server for files says this of a folder in its arguments.
		name: "missing-folder", sign: "annot access directory ",
		pattern: `[Cc]annot access directory (.*?)(?:, skipping)?$`,
		reason:  "the program cannot use the folder {1}",
		fix:     "make it, or correct its path in \"args\"; see whether you may read it",
	},
	{
		// The line itself says best what is missing, so there is no reason of ours.
		name: "missing-argument", sign: "rgument",
		pattern: `(?i)^(?:error: )?(?:please )?(?:provide|specify|pass|missing) .{0,80}\barguments?\b`,
		fix:     "add it to \"args\"",
	},
	// A program that prints its usage usually says first what was wrong; alone keeps this row from hiding that.
	{
		name: "usage", sign: "sage", alone: true,
		pattern: `(?i)^(?:\[\w+\] )?usage(?:: | of )`,
		fix:     "it was started in another way than it wants: correct \"args\"",
	},
	// The next rows are about programs that run and are silent: they explain a timeout, not an end.
	{
		// A program that prints an address and waits, as mcp-remote does.
		name: "waits-for-sign-in", sign: "uthori", silent: true,
		pattern: `(?i)\bauthori[sz]e\b.{0,40}\b(?:visit|open|brows|url|link|http)`,
		reason:  "the program may wait for somebody to sign in",
		fix:     signInFix,
	},
	{
		// Other programs print an address in a sentence about signing in.
		name: "waits-for-sign-in", sign: "http", silent: true,
		pattern: `(?i)\b(?:sign|log) ?in\b.{0,60}?https?://|\b(?:open|visit|go to)\b.{0,40}https?://.{0,200}\b(?:auth|login|signin|device|code)`,
		reason:  "the program may wait for somebody to sign in",
		fix:     signInFix,
	},
	{
		// A server for HTTP never answers on standard output, so the handshake times out.
		name: "speaks-http", sign: "http", silent: true,
		pattern: `(?i)\b(?:listening|running|started|serving|available)\b.{0,60}?(https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::\]):\d+[^\s"'<>]*)`,
		reason:  "the program seems to be an HTTP server: it says that it listens on {1}",
		fix:     stdioFix,
	},
	{
		// Some programs name the port alone.
		name: "speaks-http", sign: "port ", silent: true,
		pattern: `(?i)\blistening on (port \d+)`,
		reason:  "the program seems to be a server of the network: it says that it listens on <1>",
		fix:     stdioFix,
	},
}

// signInFix, stdioFix and variableFix are the advice of the rows above.
const (
	signInFix   = "see the address in what it wrote (mcpvisor why), open it, then connect again"
	stdioFix    = "let it use standard input and output (often an argument: stdio), or configure its \"url\" and not its \"command\""
	variableFix = "give it that in \"env\" of its entry: \"env\": {\"<1>\": \"${<1>}\"} takes it from your environment"
)

// missingVariable returns the name of an environment variable in a line that also has a word of demand; nil if it lacks either.
func missingVariable(line string) (groups []string) {
	// The first name of a variable in the line, if any other word asks for something.
	name, asks := "", false
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return !isWord(r) && r != '_' }) {
		if name == "" && isVariableName(word) {
			name = word
		}
		asks = asks || isDemandWord(strings.ToLower(word))
	}
	if name == "" || !asks {
		return nil
	}
	return []string{line, name}
}

// isVariableName reports whether a word has the form of an environment variable: capitals with an underscore (API_KEY).
func isVariableName(word string) bool {
	return strings.Contains(word, "_") && word[0] >= 'A' && word[0] <= 'Z' && !strings.HasSuffix(word, "_") &&
		!strings.ContainsFunc(word, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

// isDemandWord knows the words, in lower case, with which programs ask for a setting.
func isDemandWord(word string) bool {
	switch word {
	case "required", "requires", "require", "missing", "set", "unset", "provide", "provided", "define", "defined", "undefined", "specify", "specified",
		"must", "need", "needs", "needed", "empty", "without", "configure", "configured":
		return true
	}
	return false
}
