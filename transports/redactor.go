package transports

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// redactor hides values in text that a server wrote, because one that cannot log in tends to print the credentials it tried.
// It finds them in each form in which programs write them (messages.WrittenForms). It is safe for concurrent use.
type redactor struct {
	// values are the secrets as configured.
	values []string

	// once builds the two fields below at the first text with something to hide: most servers never write any.
	once     sync.Once
	forms    []string
	replacer *strings.Replacer
}

const (
	// redactedMark stands in the place of each hidden value.
	redactedMark = "[redacted]"
	// minSecretLength keeps harmless words such as "true" and "debug" from being hidden.
	minSecretLength = 6
)

// newRedactor hides all values, however short. It keeps the slice.
func newRedactor(values []string) *redactor { return &redactor{values: values} }

// newChildRedactor hides secrets, and the values of those variables of env whose name says that they hold a secret.
func newChildRedactor(secrets, env []string) *redactor {
	values := slices.Clone(secrets)
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); isSecretName(name) {
			values = append(values, value)
		}
	}
	return newRedactor(slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecretLength }))
}

// cutOverlap returns how many bytes around a cut are needed to see whether it goes through a secret; 0 without secrets.
func (s *redactor) cutOverlap() int {
	if len(s.values) == 0 {
		return 0
	}
	return messages.LongestWritten
}

// buildReplacer makes the forms and the replacer once.
func (s *redactor) buildReplacer() {
	s.once.Do(func() {
		s.forms = messages.WrittenForms(s.values)
		var pairs []string
		// WrittenForms gives the longest first, and the replacer takes the first that matches: one form may begin with another.
		for _, v := range s.forms {
			pairs = append(pairs, v, redactedMark)
		}
		s.replacer = strings.NewReplacer(pairs...)
	})
}

// redactText returns text with every form of every value replaced.
func (s *redactor) redactText(text string) string {
	if len(s.values) == 0 || text == "" {
		return text
	}
	s.buildReplacer()
	return s.replacer.Replace(text)
}

// cutAfterSecret moves a cut that goes through a secret to the secret's end. The new cut may go through another one, so that it
// repeats until none is cut.
func (s *redactor) cutAfterSecret(text string, cut int) int {
	if len(s.values) == 0 {
		return cut
	}
	s.buildReplacer()
	for moved := true; moved; {
		moved = false
		for _, form := range s.forms {
			from := max(0, cut-len(form)+1)
			// Only a form that begins before the cut and ends after it can be cut.
			around := text[from:min(len(text), cut+len(form)-1)]
			if i := strings.LastIndex(around, form); i >= 0 && from+i < cut && cut < from+i+len(form) {
				cut, moved = from+i+len(form), true
			}
		}
	}
	return cut
}

// redactStart returns the first size bytes of a text without secrets. A secret that the end would cut is hidden whole.
func (s *redactor) redactStart(text string, size int) string {
	if len(text) <= size {
		return s.redactText(text)
	}
	return s.redactText(text[:s.cutAfterSecret(text, size)])
}

// isSecretName reports whether the name of a variable, a header or a parameter says that its value is a secret.
func isSecretName(name string) bool {
	name = strings.ToUpper(name)
	for _, w := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "API_KEY", "ACCESS_KEY",
		"PRIVATE_KEY", "CREDENTIAL", "_AUTH", "_PAT", "_DSN"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY")
}
