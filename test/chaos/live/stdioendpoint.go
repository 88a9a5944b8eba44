package live

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// stdioEndpoint is the door of a stdio server: the program that its process is started from. A server whose program shall vanish
// has one of its own: a link in a folder of the run.
type stdioEndpoint struct {
	program, link string // link is empty if the program itself is started
	target        messages.Spec
	descriptors   *descriptorLimit
}

func newStdioEndpoint(folder, program, name string, spec messages.Spec, l *descriptorLimit) (*stdioEndpoint, error) {
	h := &stdioEndpoint{program: program, target: spec, descriptors: l}
	h.target.Command = program
	if folder != "" {
		h.link = filepath.Join(folder, name+filepath.Ext(program))
		h.target.Command = h.link
	}
	return h, h.allowConns()
}

// allowConns lays the link.
func (h *stdioEndpoint) allowConns() error {
	if h.link == "" {
		return nil
	}
	_ = os.Remove(h.link) // there may be none
	return os.Symlink(h.program, h.link)
}

// refuseConns does nothing: a process cannot be refused, only its program be taken away.
func (h *stdioEndpoint) refuseConns() {}

func (h *stdioEndpoint) endpointSpec() messages.Spec { return h.target }

// blockStart implements door. What cannot be done on this system is not done: the machine's fault has not fired then, because
// Open was asked.
func (h *stdioEndpoint) blockStart(class messages.Class, undo bool) {
	switch {
	case class == messages.ClassExhausted && undo:
		h.descriptors.restoreLimit()
	case class == messages.ClassExhausted:
		h.descriptors.lowerLimit()
	case h.link == "":
	case undo:
		_ = h.allowConns()
	default:
		_ = os.Remove(h.link)
		if class == messages.ClassConfig {
			_ = os.WriteFile(h.link, []byte("no program"), 0o600)
		}
	}
}

func (h *stdioEndpoint) close() {}

// descriptorLimit are how many descriptors this process may have. Several servers may want them to be exhausted at once.
type descriptorLimit struct {
	mu      sync.Mutex
	holders int
	undo    func()
}

func (l *descriptorLimit) lowerLimit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders++; l.holders == 1 {
		l.undo = exhaustDescriptors()
	}
}

func (l *descriptorLimit) restoreLimit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders == 0 {
		return
	}
	if l.holders--; l.holders == 0 {
		l.undo()
	}
}

// resetLimit gives back what is still taken.
func (l *descriptorLimit) resetLimit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders > 0 {
		l.holders = 0
		l.undo()
	}
}
