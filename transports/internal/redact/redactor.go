// Package redact hides secrets in texts that servers write, also where a cut goes through one.
//
//	r := redact.NewForChild(secrets, env)   // for a process: also the values of variables that sound secret
//	text = r.RedactText(text)
//	start := r.RedactStart(text, 200)       // no secret is cut in two
//
// # How it fits
//
// Package stdio redacts what a child prints with it, package origin every text of a remote server. messages.WrittenForms knows in
// which forms programs write a value (as it is, escaped for JSON or for a URL, line by line); this package knows where to cut.
//
// Guarantees: a value is found in each of those forms, the longest first, and a cut never leaves the first half of one. Without
// values the text comes back as it is, at no cost.
//
// Not promised: values of a child shorter than 6 bytes are not hidden, since "true" or "debug" would vanish from every log; and a
// secret that a server writes in two texts is two texts.
package redact

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Redactor hides values in text that a server wrote, because one that cannot log in tends to print the credentials it tried.
// It finds them in each form in which programs write them (messages.WrittenForms). It is safe for concurrent use.
type Redactor struct {
	// values are the secrets as configured.
	values []string

	// once builds the two fields below at the first text with something to hide: most servers never write any.
	once     sync.Once
	forms    []string
	replacer *strings.Replacer
}

const (
	// Mark stands in the place of each hidden value.
	Mark = "[redacted]"
	// minSecretLength keeps harmless words such as "true" and "debug" from being hidden.
	minSecretLength = 6
)

// New hides all values, however short. It keeps the slice.
func New(values []string) *Redactor { return &Redactor{values: values} }

// NewForChild hides secrets, and the values of those variables of env whose name says that they hold a secret.
func NewForChild(secrets, env []string) *Redactor {
	values := slices.Clone(secrets)
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); IsSecretName(name) {
			values = append(values, value)
		}
	}
	return New(slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecretLength }))
}

// CutOverlap returns how many bytes around a cut are needed to see whether it goes through a secret; 0 without secrets.
func (s *Redactor) CutOverlap() int {
	if len(s.values) == 0 {
		return 0
	}
	return messages.LongestWritten
}

// buildReplacer makes the forms and the replacer once.
func (s *Redactor) buildReplacer() {
	s.once.Do(func() {
		s.forms = messages.WrittenForms(s.values)
		var pairs []string
		// WrittenForms gives the longest first, and the replacer takes the first that matches: one form may begin with another.
		for _, v := range s.forms {
			pairs = append(pairs, v, Mark)
		}
		s.replacer = strings.NewReplacer(pairs...)
	})
}

// RedactText returns text with every form of every value replaced.
func (s *Redactor) RedactText(text string) string {
	if len(s.values) == 0 || text == "" {
		return text
	}
	s.buildReplacer()
	return s.replacer.Replace(text)
}

// CutAfterSecret moves a cut that goes through a secret to the secret's end. The new cut may go through another one, so that it
// repeats until none is cut.
func (s *Redactor) CutAfterSecret(text string, cut int) int {
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

// RedactStart returns the first size bytes of a text without secrets. A secret that the end would cut is hidden whole.
func (s *Redactor) RedactStart(text string, size int) string {
	if len(text) <= size {
		return s.RedactText(text)
	}
	return s.RedactText(text[:s.CutAfterSecret(text, size)])
}

// IsSecretName reports whether the name of a variable, a header or a parameter says that its value is a secret.
func IsSecretName(name string) bool {
	name = strings.ToUpper(name)
	for _, w := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "API_KEY", "ACCESS_KEY",
		"PRIVATE_KEY", "CREDENTIAL", "_AUTH", "_PAT", "_DSN"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY")
}
