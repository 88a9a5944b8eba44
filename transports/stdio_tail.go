package transports

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// tail keeps the last bytes of a stream. It grows with what is written, up to its size, so that a silent child costs
// nothing. It is safe for concurrent use.
type tail struct {
	size int

	mu   sync.Mutex
	buf  []byte
	next int // where the next byte goes once buf is full
}

func (t *tail) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > t.size {
		p = p[len(p)-t.size:]
		t.buf, t.next = t.buf[:0], 0
	}
	if room := t.size - len(t.buf); room > 0 {
		n := min(room, len(p))
		t.buf = append(t.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(t.buf[t.next:], p)
		p = p[n:]
		t.next = (t.next + n) % t.size
	}
}

// String is what is kept. If the beginning was lost, it starts with a whole line where one is near: half a line
// misleads, and half a secret could not be recognised.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == 0 && len(t.buf) < t.size {
		return string(t.buf)
	}
	all := append(bytes.Clone(t.buf[t.next:]), t.buf[:t.next]...)
	if i := bytes.IndexByte(all, '\n'); i >= 0 && i < len(all)-1 {
		all = all[i+1:]
	}
	return string(all)
}

// secrets hides values in text that a child wrote: a server that cannot log in tends to say with what it tried.
type secrets struct{ *strings.Replacer }

const (
	hidden = "[redacted]"
	// A shorter value would hide harmless words: "true", "debug".
	shortestSecret = 6
)

// newSecrets takes the values of cfg.Secrets and those of the variables whose name says that they hold one.
func newSecrets(cfg *StdioConfig) secrets {
	values := slices.Clone(cfg.Secrets)
	for _, kv := range cfg.Env {
		if name, value, _ := strings.Cut(kv, "="); secretName(name) {
			values = append(values, value)
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < shortestSecret })
	if len(values) == 0 {
		return secrets{}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may begin with another
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, hidden)
	}
	return secrets{strings.NewReplacer(pairs...)}
}

func (s secrets) hide(text string) string {
	if s.Replacer == nil {
		return text
	}
	return s.Replace(text)
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
