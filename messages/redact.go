package messages

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

const redaction = "[redacted]"

// Redacted returns the spec without its secrets, for people and logs. Values that are declared to be secret never
// appear in it: those of env and headers, the keys, tokens and secrets of auth, and of the URL the user information,
// the query values and the fragment.
//
// The command, its arguments and the path of the URL have no place for secrets, and often contain them all the same.
// There Redacted replaces the value of a flag, assignment or header whose name sounds like a credential, the value
// behind -e and -H, and words that look like a token. It does not find a secret that looks like an ordinary word.
func (s Spec) Redacted() Spec {
	s.Env = redactValues(s.Env)
	s.Headers = redactValues(s.Headers)
	s.Auth = s.Auth.redactedCopy()
	if s.TLS != nil {
		t := *s.TLS // names of files and of a host: no secrets
		s.TLS = &t
	}
	s.Isolation = s.Isolation.clone()
	s.URL = RedactURL(s.URL)
	s.Command, s.Args = redactCommand(s.Command, s.Args)
	return s
}

// redactCommand hides the secrets of a command line. Each argument is judged with the one before it, because "--token abc"
// is recognised by its flag only.
func redactCommand(command string, args []string) (string, []string) {
	args = slices.Clone(args)
	before := ""
	for i, a := range args {
		args[i] = redactArg(before, a)
		before = a
	}
	return redactArg("", command), args
}

// redactValues hides every value of environment variables or headers and keeps the names. No value is judged by its looks:
// most secrets look like nothing in particular.
func redactValues(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := maps.Clone(m)
	for k := range out {
		out[k] = redaction
	}
	return out
}

// RedactURL hides of a URL the user information, the query values, the fragment and every path segment that looks like
// a token. Text that is no URL with a host is hidden whole if it holds :// or one of the characters @ ? # =. So is a
// URL with an @ inside a segment of its path: most likely its author wrote a password with a slash in it.
func RedactURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" {
		if strings.Contains(raw, "://") || strings.ContainsAny(raw, "@?#=") ||
			slices.ContainsFunc(strings.Split(raw, "/"), looksSecret) {
			return redaction
		}
		return raw
	}
	if i := strings.LastIndexByte(u.Path, '@'); i > 0 && u.Path[i-1] != '/' {
		return redaction
	}
	if u.User != nil {
		u.User = url.User("redacted")
	}
	if u.RawQuery != "" {
		pairs := strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' })
		for i, pair := range pairs {
			key, value, _ := strings.Cut(pair, "=")
			if pairs[i] = key + "=redacted"; strings.Trim(value, "=") == "" || looksSecret(key) {
				pairs[i] = "redacted" // a key without a value is the value; the base64 of it may end with =
			}
		}
		u.RawQuery = strings.Join(pairs, "&")
	}
	if u.Fragment != "" {
		u.Fragment, u.RawFragment = "redacted", ""
	}
	segments := strings.Split(u.Path, "/")
	for i, s := range segments {
		if looksSecret(s) {
			segments[i] = "redacted"
		}
	}
	if path := strings.Join(segments, "/"); path != u.Path {
		u.Path, u.RawPath = path, ""
	}
	return u.String()
}

// redactArg returns one argument without its secret; before is the argument in front of it, which may be the flag.
func redactArg(before, a string) string {
	switch {
	case before == "-H": // curl's and mcp-remote's header
		return redactAfter(a, strings.IndexByte(a, ':'))
	case before == "-e" || before == "--env": // docker's variable
		if i := strings.IndexByte(a, '='); i >= 0 {
			return redactAfter(a, i)
		}
	case before == "-u" || before == "--user":
		if i := strings.IndexByte(a, ':'); i >= 0 {
			return redactAfter(a, i)
		}
	case strings.HasPrefix(before, "-") && !strings.ContainsAny(before, "= ") && secretWord(before) >= 0:
		if !strings.HasPrefix(a, "--") {
			return redaction
		}
	}
	if scheme, _, ok := strings.Cut(a, "://"); ok && !strings.ContainsFunc(scheme, notScheme) {
		return RedactURL(a) // and no more: a host called auth is no assignment
	}
	// An assignment ends what is shown: where the value ends cannot be known, a shell command may quote it in any way.
	if i := secretWord(a); i >= 0 {
		if j := strings.IndexAny(a[i:], "=: "); j >= 0 {
			return redactWords(a[:i+j+1]) + redaction
		}
	}
	return redactWords(a)
}

// redactAfter keeps a up to and with its byte i, or nothing if i is negative.
func redactAfter(a string, i int) string { return a[:i+1] + redaction }

// redactWords replaces each word that is a credential by its looks, or a URL that holds one.
func redactWords(a string) string {
	var b strings.Builder
	for a != "" {
		n := strings.IndexFunc(a, wordEnd)
		if n < 0 {
			n = len(a)
		}
		word := a[:n]
		if strings.Contains(word, "://") { // its query has what ends other words
			if n = strings.IndexFunc(a, urlEnd); n < 0 {
				n = len(a)
			}
			word = a[:n]
		}
		switch {
		case looksSecret(word):
			word = redaction
		case strings.Contains(word, "://"):
			word = RedactURL(word)
		}
		b.WriteString(word)
		end := len(a) - len(strings.TrimLeftFunc(a[n:], wordEnd))
		b.WriteString(a[n:end])
		a = a[end:]
	}
	return b.String()
}

func notScheme(r rune) bool {
	return !(r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("+-.", r))
}

func urlEnd(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\'' }

func wordEnd(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',=|`, r) }

// secretWords holds parts of names that announce a credential, in lower case.
var secretWords = []string{
	"token", "secret", "pass", "pwd", "key", "auth", "credential", "bearer", "cookie", "header", "private", "dsn",
}

// SecretName reports whether a name announces a credential: it holds "token", "password", "key" or a word like these.
func SecretName(name string) bool { return secretWord(name) >= 0 }

// RedactTokens replaces the words of a text that are credentials by their looks, and the secrets of its URLs.
func RedactTokens(text string) string { return redactWords(text) }

// secretWord returns the index at which the first such name begins in s, or -1.
func secretWord(s string) int {
	s = lowerASCII(s)
	first := -1
	for _, w := range secretWords {
		if i := strings.Index(s, w); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// lowerASCII keeps every byte at its place, which strings.ToLower does not promise.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// tokenPrefixes holds the beginnings of the tokens that well-known services give out.
var tokenPrefixes = []string{
	"sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xapp-",
	"AKIA", "ASIA", "AIza", "eyJ", "npm_", "hf_",
}

// looksSecret reports whether a word has the looks of a token: a known beginning, or at least 20 letters and digits of
// all three sorts, or at least 32 hexadecimal digits. Names of packages, hosts and files have not.
func looksSecret(word string) bool {
	for _, p := range tokenPrefixes {
		if strings.HasPrefix(word, p) && len(word) >= len(p)+8 {
			return true
		}
	}
	var lower, upper, digit, hex int
	for i := range len(word) {
		switch c := word[i]; {
		case c >= '0' && c <= '9':
			digit++
			hex++
		case c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
			hex++
			if c >= 'a' {
				lower++
			} else {
				upper++
			}
		case c >= 'a' && c <= 'z':
			lower++
		case c >= 'A' && c <= 'Z':
			upper++
		case c == '-' || c == '_':
		default:
			return false
		}
	}
	if letters := lower + upper; hex >= 32 && hex == letters+digit && letters > 0 && digit > 0 {
		return true
	}
	return lower+upper+digit >= 20 && lower > 0 && upper > 0 && digit > 0
}
