package transports

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// tail keeps the last bytes of a stream, and those before them that a secret may begin in. It grows with what is written, up
// to its size, so that a silent child costs nothing. It is safe for concurrent use.
type tail struct {
	size    int // of what is shown
	overlap int // of what is kept before it, to find secrets across the cut

	mu   sync.Mutex
	buf  []byte
	next int // where the next byte goes once buf is full
}

func (t *tail) write(p []byte) {
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

// forget drops what was written.
func (t *tail) forget() {
	t.mu.Lock()
	t.buf, t.next = nil, 0
	t.mu.Unlock()
}

// shown returns what was written last, without secrets. If the beginning was lost, it starts with a whole line where one is near:
// half a line misleads.
func (t *tail) shown(s *secrets) string {
	all, lost := t.kept()
	if !lost && len(all) <= t.size {
		return s.hide(all)
	}
	from := len(all) - min(t.size, len(all))
	from = s.behind(all, from)
	all = all[from:]
	if i := strings.IndexByte(all, '\n'); i >= 0 && i < len(all)-1 {
		all = all[s.behind(all, i+1):]
	}
	return s.hide(all)
}

// kept returns the bytes that are kept, and whether something was written before them.
func (t *tail) kept() (text string, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) < t.size+t.overlap {
		return string(t.buf), false
	}
	return string(slices.Concat(t.buf[t.next:], t.buf[:t.next])), true
}

// secrets hides values in text that a child wrote: a server that cannot log in tends to say with what it tried. It looks for
// them in each form in which programs write them (messages.WrittenForms). Safe for concurrent use.
type secrets struct {
	values []string

	once     sync.Once // of what follows: most servers never write anything to be hidden
	forms    []string
	replacer *strings.Replacer
}

const (
	hidden = "[redacted]"
	// A shorter value would hide harmless words: "true", "debug".
	shortestSecret = 6
)

// newSecrets takes the values of cfg.Secrets and those of the variables whose name says that they hold one.
func newSecrets(cfg *StdioConfig) *secrets {
	values := slices.Clone(cfg.Secrets)
	for _, kv := range cfg.Env {
		if name, value, _ := strings.Cut(kv, "="); secretName(name) {
			values = append(values, value)
		}
	}
	return &secrets{values: slices.DeleteFunc(values, func(v string) bool { return len(v) < shortestSecret })}
}

// overlap is how many bytes around a cut are needed to see whether it goes through a secret.
func (s *secrets) overlap() int {
	if len(s.values) == 0 {
		return 0
	}
	return messages.LongestWritten
}

func (s *secrets) ready() {
	s.once.Do(func() {
		s.forms = messages.WrittenForms(s.values)
		var pairs []string
		for _, v := range s.forms { // the longest first: one may begin with another
			pairs = append(pairs, v, hidden)
		}
		s.replacer = strings.NewReplacer(pairs...)
	})
}

func (s *secrets) hide(text string) string {
	if len(s.values) == 0 || text == "" {
		return text
	}
	s.ready()
	return s.replacer.Replace(text)
}

// behind moves a cut to the end of a secret that it goes through, and to the end of the one that this cuts.
func (s *secrets) behind(text string, cut int) int {
	if len(s.values) == 0 {
		return cut
	}
	s.ready()
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

// beginning is the first bytes of a text, without secrets: a secret that the end cuts is hidden whole.
func (s *secrets) beginning(text string, size int) string {
	if len(text) <= size {
		return s.hide(text)
	}
	return s.hide(text[:s.behind(text, size)])
}

func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, w := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "API_KEY", "ACCESS_KEY",
		"PRIVATE_KEY", "CREDENTIAL", "_AUTH", "_PAT", "_DSN"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY")
}
