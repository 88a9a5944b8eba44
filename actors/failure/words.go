package failure

// badWord knows the words, in lower case, with which programs say that something is wrong.
func badWord(word string) bool {
	// A switch over strings is compiled to a search, so a line costs little.
	switch word {
	case "error", "errors", "fatal", "fail", "failed", "fails", "failure", "cannot", "can't", "couldn't", "unable",
		"missing", "must", "required", "requires", "require", "invalid", "denied", "refused", "unknown", "unrecognized",
		"unrecognised", "unauthorized", "forbidden", "expired", "panic", "crashed", "killed":
		return true
	}
	return false
}

// badPair knows two words in a row that say so, and do not one by one.
func badPair(words string) bool {
	// Pairs whose words alone are harmless: "not" and "found" occur in many good lines.
	switch words {
	case "could not", "can not", "not found", "not set", "not defined", "not valid", "not exist", "not installed",
		"not supported", "not provided", "not accessible", "no such", "please set", "please provide", "please specify",
		"in use", "timed out":
		return true
	}
	return false
}
