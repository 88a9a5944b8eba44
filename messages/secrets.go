package messages

import (
	"net/url"
	"slices"
	"strings"
)

// shortestSecret is the length in bytes below which a value is not looked for in text: hiding it would hide harmless
// words ("true", "debug").
const shortestSecret = 6

// Secrets returns the values that Redacted hides, the longest first, except those of fewer than six bytes. They must
// not appear in any text about the server: a server that cannot log in tends to repeat the credentials that it tried.
func (s Spec) Secrets() []string {
	var all []string
	for _, v := range s.Env {
		all = append(all, v)
	}
	for _, v := range s.Headers {
		all = append(append(all, v), strings.Fields(v)...) // of "Bearer abc" a server may repeat abc alone
	}
	all = append(all, s.Auth.secretValues()...)
	all = append(all, urlSecrets(s.URL)...)
	all = append(all, commandSecrets(s.Command, s.Args)...)
	all = slices.DeleteFunc(all, func(v string) bool { return len(v) < shortestSecret || strings.EqualFold(v, "bearer") })
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}

// RedactText replaces the spec's Secrets in a text, in each of their WrittenForms. Call it before a text is cut,
// because half a secret is not found.
func (s Spec) RedactText(text string) string {
	if text == "" {
		return ""
	}
	return s.Redactor()(text)
}

// Redactor returns a RedactText for several texts, which collects the spec's Secrets at its first call only. One
// goroutine may use it.
func (s *Spec) Redactor() func(text string) string {
	var secrets []string
	known := false
	return func(text string) string {
		if text == "" {
			return ""
		}
		if !known {
			secrets, known = WrittenForms(s.Secrets()), true
		}
		for _, secret := range secrets {
			text = strings.ReplaceAll(text, secret, redaction)
		}
		return text
	}
}

// commandSecrets returns the parts of a command line that Redacted hides.
func commandSecrets(command string, args []string) (all []string) {
	if command == "" && len(args) == 0 {
		return nil
	}
	before := ""
	for _, a := range append([]string{command}, args...) {
		all = append(append(all, hiddenPart(a, redactArg(before, a))), urlSecrets(a)...)
		before = a
	}
	return all
}

// hiddenPart returns the part of the raw text that the redacted one does not show, from the first difference to the last.
func hiddenPart(raw, shown string) string {
	if raw == shown {
		return ""
	}
	i := 0
	for i < len(raw) && i < len(shown) && raw[i] == shown[i] {
		i++
	}
	j := 0
	for j < len(raw)-i && j < len(shown)-i && raw[len(raw)-1-j] == shown[len(shown)-1-j] {
		j++
	}
	return strings.TrimSpace(raw[i : len(raw)-j])
}

// urlSecrets returns the parts of a URL that RedactURL hides, each by itself and as it is written: a server that takes the URL
// apart may repeat one of them alone.
func urlSecrets(raw string) []string {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil
	}
	all := []string{u.RawQuery, u.Fragment, u.EscapedFragment()}
	if u.User != nil {
		password, _ := u.User.Password()
		all = append(all, u.User.String(), password)
	}
	for key, values := range u.Query() {
		for _, v := range values {
			all = append(all, v, url.QueryEscape(v))
		}
		if looksSecret(key) {
			all = append(all, key)
		}
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if looksSecret(segment) {
			all = append(all, segment)
		}
	}
	return all
}
