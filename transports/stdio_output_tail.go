package transports

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// outputTail keeps the last bytes of a stream, and as many before them as a secret that reaches into them may have. It grows with
// the stream up to its size, so that a silent child costs nothing. It is safe for concurrent use.
type outputTail struct {
	size    int // bytes that are shown
	overlap int // bytes kept before them, to find secrets across the cut

	// mu guards buf, a ring once it is full, and next, where the next byte goes then.
	mu   sync.Mutex
	buf  []byte
	next int
}

// write appends to the tail, and overwrites the oldest bytes when the ring is full.
func (t *outputTail) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := t.size + t.overlap
	if len(p) > size {
		p = p[len(p)-size:]
		t.buf, t.next = t.buf[:0], 0
	}
	if room := size - len(t.buf); room > 0 {
		n := min(room, len(p))
		t.buf = append(t.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(t.buf[t.next:], p)
		p = p[n:]
		t.next = (t.next + n) % size
	}
}

// clearText forgets everything.
func (t *outputTail) clearText() {
	t.mu.Lock()
	t.buf, t.next = nil, 0
	t.mu.Unlock()
}

// redactedText returns the last bytes without secrets. If earlier bytes were lost, it starts with a whole line where there is
// one, because half a line misleads.
func (t *outputTail) redactedText(s *redactor) string {
	all, lost := t.keptText()
	if !lost && len(all) <= t.size {
		return s.redactText(all)
	}
	from := len(all) - min(t.size, len(all))
	// A cut through a secret would leave a part that no longer matches any form, and so would not be hidden.
	from = s.cutAfterSecret(all, from)
	all = all[from:]
	if i := strings.IndexByte(all, '\n'); i >= 0 && i < len(all)-1 {
		all = all[s.cutAfterSecret(all, i+1):]
	}
	return s.redactText(all)
}

// keptText returns the bytes that are kept, and whether something was written before them. A ring that is exactly full counts as
// such.
func (t *outputTail) keptText() (text string, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) < t.size+t.overlap {
		return string(t.buf), false
	}
	return string(slices.Concat(t.buf[t.next:], t.buf[:t.next])), true
}

// redactor hides values in text that a child wrote, because a server that cannot log in tends to print the credentials it tried.
// It finds them in each form in which programs write them (messages.WrittenForms). It is safe for concurrent use.
type redactor struct {
	// values are the secrets as configured, each of at least minSecretLength bytes.
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

// newRedactor takes cfg.Secrets and the values of the variables whose name says that they hold a secret.
func newRedactor(cfg *StdioConfig) *redactor {
	values := slices.Clone(cfg.Secrets)
	for _, kv := range cfg.Env {
		if name, value, _ := strings.Cut(kv, "="); isSecretName(name) {
			values = append(values, value)
		}
	}
	return &redactor{values: slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecretLength })}
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
