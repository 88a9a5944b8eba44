package peer

import "slices"

// holdFaults are the hooks of the faults that hold up whole connections.
var holdFaults = map[string]hooks{
	"stop": {
		onBegin: stopAll,
		onDial: func(m *machine, f *fault, id int) bool {
			// A new start of the program is another process and runs; a dial to a stopped server over the network waits.
			return m.isRemote() && hangDial(m, f, id)
		},
		onUnknownConn: func(m *machine, f *fault, id int, _ []byte) bool {
			f.recordFired(m, id)
			return true
		},
		onEnd: resumeAll,
	},
	"deaf": {
		onBegin: func(m *machine, f *fault) {
			for _, c := range m.sortedConns() {
				// Only the first fault that stops the reading tells the performer, and only the last that ends resumes it.
				if c.notReadingBy = append(c.notReadingBy, f); len(c.notReadingBy) == 1 {
					m.addActions(PauseReading{Conn: c.id})
				}
			}
		},
		onEnd: func(m *machine, f *fault) {
			for _, c := range m.sortedConns() {
				if slices.Contains(c.notReadingBy, f) && len(c.notReadingBy) == 1 {
					m.addActions(PauseReading{Conn: c.id, Resume: true})
				}
			}
			m.releaseFault(f)
		},
	},
	"partition": {
		onBegin:       cutAll,
		onDial:        hangDial,
		onUnknownConn: swallowMessage,
		onEnd: func(m *machine, f *fault) {
			m.releaseFault(f)
			m.resetDeadConns(f)
			m.retryDials()
		},
	},
	"sleep": {
		onBegin: func(m *machine, f *fault) {
			if m.isRemote() {
				cutAll(m, f)
				return
			}
			stopAll(m, f)
		},
		// A machine that sleeps starts nothing; dials wait for its end.
		onDial: hangDial,
		onEnd: func(m *machine, f *fault) {
			// With cut, the network resets the connections on waking instead of continuing them.
			if m.isRemote() && f.params.Bool("cut") {
				for _, c := range m.sortedConns() {
					if slices.Contains(c.cutBy, f) {
						f.recordFired(m, c.id)
						c.cutBy = slices.DeleteFunc(c.cutBy, func(o *fault) bool { return o == f })
						m.endConn(c, Exit{Reset: true})
					}
				}
			}
			resumeAll(m, f)
			m.resetDeadConns(f)
		},
	},
	"stuck-dial": {
		onDial: func(m *machine, f *fault, id int) bool {
			m.addActions(Hold{Conn: id})
			return hangDial(m, f, id)
		},
		onEnd: func(m *machine, _ *fault) { m.retryDials() },
	},
	"black-hole": {
		onDial:        hangDial,
		onUnknownConn: swallowMessage,
		onMessage: func(m *machine, f *fault, c *conn, _ *message) bool {
			f.recordFired(m, c.id)
			return true
		},
		onClosed: func(m *machine, f *fault, c *conn, _ bool) bool { return keepConn(m, f, c) },
		onEnd: func(m *machine, f *fault) {
			releaseHeld(m, f)
			m.retryDials()
		},
	},
	"half-open": {
		onBegin: func(m *machine, f *fault) {
			for _, c := range m.sortedConns() {
				f.recordFired(m, c.id)
				m.forgetConn(c)
				m.deadConns[c.id] = f
				m.addActions(Exit{Conn: c.id, HalfOpen: true})
			}
		},
		onEnd: func(m *machine, f *fault) { m.resetDeadConns(f) },
	},
}

// stopAll stops every connection. Only the first of several faults returns a Stop.
func stopAll(m *machine, f *fault) {
	for _, c := range m.sortedConns() {
		f.recordFired(m, c.id)
		if c.stoppedBy = append(c.stoppedBy, f); len(c.stoppedBy) == 1 {
			m.addActions(Stop{Conn: c.id})
		}
	}
}

// resumeAll resumes every connection that no other fault stops, and answers the dials that waited.
func resumeAll(m *machine, f *fault) {
	for _, c := range m.sortedConns() {
		if slices.Contains(c.stoppedBy, f) && len(c.stoppedBy) == 1 {
			m.addActions(Stop{Conn: c.id, Resume: true})
		}
	}
	m.releaseFault(f)
	m.retryDials()
}

// cutAll keeps all bytes of every connection from its other side. Each held message records the effect later.
func cutAll(m *machine, f *fault) {
	for _, c := range m.sortedConns() {
		c.cutBy = append(c.cutBy, f)
	}
}

// hangDial keeps a dial waiting until the end of the fault.
func hangDial(m *machine, f *fault, id int) bool {
	f.recordFired(m, id)
	m.holdDial(id)
	return true
}

// swallowMessage leaves a message unanswered.
func swallowMessage(m *machine, f *fault, id int, _ []byte) bool {
	f.recordFired(m, id)
	return true
}
