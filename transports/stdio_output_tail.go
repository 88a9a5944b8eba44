package transports

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// outputTail keeps the last bytes of a stream, and those before them that a secret may begin in. It grows with what is written, up
// to its size, so that a silent child costs nothing. It is safe for concurrent use.
type outputTail struct {
	size    int // of what is shown
	overlap int // of what is kept before it, to find secrets across the cut

	mu   sync.Mutex
	buf  []byte
	next int // where the next byte goes once buf is full
}

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

// clearText drops what was written.
func (t *outputTail) clearText() {
	t.mu.Lock()
	t.buf, t.next = nil, 0
	t.mu.Unlock()
}

// redactedText returns what was written last, without secrets. If the beginning was lost, it starts with a whole line where one is near:
// half a line misleads.
func (t *outputTail) redactedText(s *redactor) string {
	all, lost := t.keptText()
	if !lost && len(all) <= t.size {
		return s.redactText(all)
	}
	from := len(all) - min(t.size, len(all))
	from = s.cutAfterSecret(all, from)
	all = all[from:]
	if i := strings.IndexByte(all, '\n'); i >= 0 && i < len(all)-1 {
		all = all[s.cutAfterSecret(all, i+1):]
	}
	return s.redactText(all)
}

// keptText returns the bytes that are kept, and whether something was written before them.
func (t *outputTail) keptText() (text string, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) < t.size+t.overlap {
		return string(t.buf), false
	}
	return string(slices.Concat(t.buf[t.next:], t.buf[:t.next])), true
}

// redactor hides values in text that a child wrote: a server that cannot log in tends to say with what it tried. It looks for
// them in each form in which programs write them (messages.WrittenForms). Safe for concurrent use.
type redactor struct {
	values []string

	once     sync.Once // of what follows: most servers never write anything to be hidden
	forms    []string
	replacer *strings.Replacer
}

const (
	redactedMark = "[redacted]"
	// A shorter value would hide harmless words: "true", "debug".
	minSecretLength = 6
)

// newRedactor takes the values of cfg.Secrets and those of the variables whose name says that they hold one.
func newRedactor(cfg *StdioConfig) *redactor {
	values := slices.Clone(cfg.Secrets)
	for _, kv := range cfg.Env {
		if name, value, _ := strings.Cut(kv, "="); isSecretName(name) {
			values = append(values, value)
		}
	}
	return &redactor{values: slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecretLength })}
}

// cutOverlap is how many bytes around a cut are needed to see whether it goes through a secret.
func (s *redactor) cutOverlap() int {
	if len(s.values) == 0 {
		return 0
	}
	return messages.LongestWritten
}

func (s *redactor) buildReplacer() {
	s.once.Do(func() {
		s.forms = messages.WrittenForms(s.values)
		var pairs []string
		for _, v := range s.forms { // the longest first: one may begin with another
			pairs = append(pairs, v, redactedMark)
		}
		s.replacer = strings.NewReplacer(pairs...)
	})
}

func (s *redactor) redactText(text string) string {
	if len(s.values) == 0 || text == "" {
		return text
	}
	s.buildReplacer()
	return s.replacer.Replace(text)
}

// cutAfterSecret moves a cut to the end of a secret that it goes through, and to the end of the one that this cuts.
func (s *redactor) cutAfterSecret(text string, cut int) int {
	if len(s.values) == 0 {
		return cut
	}
	s.buildReplacer()
	for moved := true; moved; {
		moved = false
		for _, form := range s.forms {
			from := max(0, cut-len(form)+1)
			around := text[from:min(len(text), cut+len(form)-1)]
			if i := strings.LastIndex(around, form); i >= 0 && from+i < cut && cut < from+i+len(form) {
				cut, moved = from+i+len(form), true
			}
		}
	}
	return cut
}

// redactStart is the first bytes of a text, without secrets: a secret that the end cuts is hidden whole.
func (s *redactor) redactStart(text string, size int) string {
	if len(text) <= size {
		return s.redactText(text)
	}
	return s.redactText(text[:s.cutAfterSecret(text, size)])
}

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
