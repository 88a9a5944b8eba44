package live

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// hatch is the door of a stdio server: the program that its process is started from. A server whose program shall vanish
// has one of its own: a link in a folder of the run.
type hatch struct {
	program, link string // link is empty if the program itself is started
	to            messages.Spec
	limits        *limits
}

func newHatch(folder, program, name string, spec messages.Spec, l *limits) (*hatch, error) {
	h := &hatch{program: program, to: spec, limits: l}
	h.to.Command = program
	if folder != "" {
		h.link = filepath.Join(folder, name+filepath.Ext(program))
		h.to.Command = h.link
	}
	return h, h.open()
}

// open lays the link.
func (h *hatch) open() error {
	if h.link == "" {
		return nil
	}
	_ = os.Remove(h.link) // there may be none
	return os.Symlink(h.program, h.link)
}

// shut does nothing: a process cannot be refused, only its program be taken away.
func (h *hatch) shut() {}

func (h *hatch) spec() messages.Spec { return h.to }

// hide implements door. What cannot be done on this system is not done: the machine's fault has not fired then, because
// Open was asked.
func (h *hatch) hide(class messages.Class, back bool) {
	switch {
	case class == messages.ClassExhausted && back:
		h.limits.restore()
	case class == messages.ClassExhausted:
		h.limits.exhaust()
	case h.link == "":
	case back:
		_ = h.open()
	default:
		_ = os.Remove(h.link)
		if class == messages.ClassConfig {
			_ = os.WriteFile(h.link, []byte("no program"), 0o600)
		}
	}
}

func (h *hatch) close() {}

// limits are how many descriptors this process may have. Several servers may want them to be exhausted at once.
type limits struct {
	mu     sync.Mutex
	wanted int
	undo   func()
}

func (l *limits) exhaust() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted++; l.wanted == 1 {
		l.undo = exhaustDescriptors()
	}
}

func (l *limits) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted == 0 {
		return
	}
	if l.wanted--; l.wanted == 0 {
		l.undo()
	}
}

// restoreAll gives back what is still taken.
func (l *limits) restoreAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted > 0 {
		l.wanted = 0
		l.undo()
	}
}
