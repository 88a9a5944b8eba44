package known

import "strings"

// programs are messages that servers themselves write for the person: a key is missing, an argument, a folder. They come last,
// because their words are the least certain.
var programs = []Failure{
	// Servers ask for variables in many words, so a function looks for a name and a demand in one line.
	{
		Name: "missing-variable", Sign: "_", Match: missingVariable,
		Fix: variableFix,
	},
	{
		// pydantic prints the class first and one line for each field after it.
		Name: "pydantic-settings", Sign: "validation error",
		Pattern: `ValidationError: \d+ validation errors? for (\w+)`,
		Reason:  "a setting of the program ({1}) is missing or not valid",
		Fix:     "the lines below it in standard error name the fields; set them in \"env\"",
	},
	{
		// Libraries for options in many languages use these words.
		Name: "unknown-option", Sign: "option",
		Pattern: `(?i)unknown option:? ['"]?(--?[\w-]+)`,
		Reason:  "the program does not know the option {1}",
		Fix:     "correct \"args\": --help of the program shows what it takes",
	},
	{
		// The libraries cobra and pflag of Go use these words.
		Name: "unknown-option", Sign: "unknown flag: ",
		Pattern: `unknown flag: (--?[\w-]+)`,
		Reason:  "the program does not know the option {1}",
		Fix:     "correct \"args\": --help of the program shows what it takes",
	},
	{
		// The reference server for files says this of a folder in its arguments.
		Name: "missing-folder", Sign: "annot access directory ",
		Pattern: `[Cc]annot access directory (.*?)(?:, skipping)?$`,
		Reason:  "the program cannot use the folder {1}",
		Fix:     "make it, or correct its path in \"args\"; see whether you may read it",
	},
	{
		// The line itself says best what is missing, so there is no reason of ours.
		Name: "missing-argument", Sign: "rgument",
		Pattern: `(?i)^(?:error: )?(?:please )?(?:provide|specify|pass|missing) .{0,80}\barguments?\b`,
		Fix:     "add it to \"args\"",
	},
	// A program that prints its usage usually says first what was wrong; alone keeps this row from hiding that.
	{
		Name: "usage", Sign: "sage", Alone: true,
		Pattern: `(?i)^(?:\[\w+\] )?usage(?:: | of )`,
		Fix:     "it was started in another way than it wants: correct \"args\"",
	},
	// The next rows are about programs that run and are silent: they explain a timeout, not an end.
	{
		// A program that prints an address and waits, as mcp-remote does.
		Name: "waits-for-sign-in", Sign: "uthori", Silent: true,
		Pattern: `(?i)\bauthori[sz]e\b.{0,40}\b(?:visit|open|brows|url|link|http)`,
		Reason:  "the program may wait for somebody to sign in",
		Fix:     signInFix,
	},
	{
		// Other programs print an address in a sentence about signing in.
		Name: "waits-for-sign-in", Sign: "http", Silent: true,
		Pattern: `(?i)\b(?:sign|log) ?in\b.{0,60}?https?://|\b(?:open|visit|go to)\b.{0,40}https?://.{0,200}\b(?:auth|login|signin|device|code)`,
		Reason:  "the program may wait for somebody to sign in",
		Fix:     signInFix,
	},
	{
		// A server for HTTP never answers on standard output, so the handshake times out.
		Name: "speaks-http", Sign: "http", Silent: true,
		Pattern: `(?i)\b(?:listening|running|started|serving|available)\b.{0,60}?(https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::\]):\d+[^\s"'<>]*)`,
		Reason:  "the program seems to be an HTTP server: it says that it listens on {1}",
		Fix:     stdioFix,
	},
	{
		// Some programs name the port alone.
		Name: "speaks-http", Sign: "port ", Silent: true,
		Pattern: `(?i)\blistening on (port \d+)`,
		Reason:  "the program seems to be a server of the network: it says that it listens on <1>",
		Fix:     stdioFix,
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
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return !IsWordRune(r) && r != '_' }) {
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
