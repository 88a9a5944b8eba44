package peer

import "slices"

// holdingFaults hold up whole connections.
var holdingFaults = map[string]hooks{
	"stop": {
		begin: stopAll,
		open: func(m *machine, f *fault, id int) bool {
			// Another start of the program is another process; whoever dials a stopped one waits.
			return m.remote() && hangs(m, f, id)
		},
		stranger: func(m *machine, f *fault, id int, _ []byte) bool {
			f.fired(m, id)
			return true
		},
		end: resumeAll,
	},
	"deaf": {
		begin: func(m *machine, f *fault) {
			for _, c := range m.connections() {
				if c.deafBy = append(c.deafBy, f); len(c.deafBy) == 1 {
					m.do(Deafen{Conn: c.id})
				}
			}
		},
		end: func(m *machine, f *fault) {
			for _, c := range m.connections() {
				if slices.Contains(c.deafBy, f) && len(c.deafBy) == 1 {
					m.do(Deafen{Conn: c.id, Hear: true})
				}
			}
			m.release(f)
		},
	},
	"partition": {
		begin:    cutAll,
		open:     hangs,
		stranger: vanishes,
		end: func(m *machine, f *fault) {
			m.release(f)
			m.unghost(f)
			m.dialAgain()
		},
	},
	"sleep": {
		begin: func(m *machine, f *fault) {
			if m.remote() {
				cutAll(m, f)
				return
			}
			stopAll(m, f)
		},
		open: hangs, // nobody dials while the machine sleeps; what was under way waits
		end: func(m *machine, f *fault) {
			if m.remote() && f.with.Truth("cut") {
				for _, c := range m.connections() {
					if slices.Contains(c.cutBy, f) {
						f.fired(m, c.id)
						c.cutBy = slices.DeleteFunc(c.cutBy, func(o *fault) bool { return o == f })
						m.exit(c, Exit{Reset: true})
					}
				}
			}
			resumeAll(m, f)
			m.unghost(f)
		},
	},
	"stuck-dial": {
		open: func(m *machine, f *fault, id int) bool {
			m.do(Hold{Conn: id})
			return hangs(m, f, id)
		},
		end: func(m *machine, _ *fault) { m.dialAgain() },
	},
	"black-hole": {
		open:     hangs,
		stranger: vanishes,
		receive: func(m *machine, f *fault, c *conn, _ *message) bool {
			f.fired(m, c.id)
			return true
		},
		closed: func(m *machine, f *fault, c *conn, _ bool) bool { return stays(m, f, c) },
		end: func(m *machine, f *fault) {
			letGo(m, f)
			m.dialAgain()
		},
	},
	"half-open": {
		begin: func(m *machine, f *fault) {
			for _, c := range m.connections() {
				f.fired(m, c.id)
				m.drop(c)
				m.ghosts[c.id] = f
				m.do(Exit{Conn: c.id, HalfOpen: true})
			}
		},
		end: func(m *machine, f *fault) { m.unghost(f) },
	},
}

func stopAll(m *machine, f *fault) {
	for _, c := range m.connections() {
		f.fired(m, c.id)
		if c.stoppedBy = append(c.stoppedBy, f); len(c.stoppedBy) == 1 {
			m.do(Stop{Conn: c.id})
		}
	}
}

func resumeAll(m *machine, f *fault) {
	for _, c := range m.connections() {
		if slices.Contains(c.stoppedBy, f) && len(c.stoppedBy) == 1 {
			m.do(Stop{Conn: c.id, Resume: true})
		}
	}
	m.release(f)
	m.dialAgain()
}

func cutAll(m *machine, f *fault) {
	for _, c := range m.connections() {
		c.cutBy = append(c.cutBy, f)
	}
}

// hangs lets a dial wait until the end of the fault.
func hangs(m *machine, f *fault, id int) bool {
	f.fired(m, id)
	m.hang(id)
	return true
}

// vanishes lets a message go unanswered.
func vanishes(m *machine, f *fault, id int, _ []byte) bool {
	f.fired(m, id)
	return true
}
