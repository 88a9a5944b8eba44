package performer

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// stdioEndpoint holds the program from which the process of a stdio server is started. A server whose program a fault removes
// has its own link to the program, in a folder of the run.
type stdioEndpoint struct {
	// link is empty if the program itself is started.
	program, link string
	// target has the arguments and the environment, and no command, which is program or link.
	target      messages.Spec
	descriptors *descriptorLimit
}

// newStdioEndpoint makes the endpoint, with a link of its own in folder unless that is empty.
func newStdioEndpoint(folder, program, name string, spec messages.Spec, l *descriptorLimit) (*stdioEndpoint, error) {
	h := &stdioEndpoint{program: program, target: spec, descriptors: l}
	h.target.Command = program
	if folder != "" {
		h.link = filepath.Join(folder, name+filepath.Ext(program))
		h.target.Command = h.link
	}
	return h, h.allowConns()
}

// allowConns makes the link.
func (h *stdioEndpoint) allowConns() error {
	if h.link == "" {
		return nil
	}
	// The old link may be missing, and another error shows in Symlink.
	_ = os.Remove(h.link)
	return os.Symlink(h.program, h.link)
}

// refuseConns does nothing, because a process cannot be refused; the fault refuse does not apply to stdio.
func (h *stdioEndpoint) refuseConns() {}

func (h *stdioEndpoint) endpointSpec() messages.Spec { return h.target }

// blockStart implements serverEndpoint. Without a link it can block nothing; the machine then rejects the dial itself.
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
		// A file that may not be run stands where the program was.
		if class == messages.ClassConfig {
			_ = os.WriteFile(h.link, []byte("no program"), 0o600)
		}
	}
}

func (h *stdioEndpoint) close() {}

// descriptorLimit lowers the limit of open descriptors of this process. Several faults may want that at once; holders counts
// them, and the last one restores the limit.
type descriptorLimit struct {
	mu      sync.Mutex
	holders int
	// undo restores the limit; nil while there is no holder.
	undo func()
}

// lowerLimit lowers the limit for one more fault.
func (l *descriptorLimit) lowerLimit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders++; l.holders == 1 {
		l.undo = exhaustDescriptors()
	}
}

// restoreLimit ends one fault's claim.
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

// resetLimit restores the limit at the end of the run, if a fault still holds it.
func (l *descriptorLimit) resetLimit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders > 0 {
		l.holders = 0
		l.undo()
	}
}
