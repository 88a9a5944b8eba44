package live

// Error is why a run could not be made: a defect of the harness or of the machine it runs on, and nothing that the servers
// or the manager did.
type Error struct {
	// Text is one sentence without a final full stop.
	Text string
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
