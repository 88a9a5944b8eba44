package live

// Error means that a run could not be made, because of a defect of the harness or of the machine that it runs on. Neither the
// servers nor the manager cause it.
type Error struct {
	// Text is one sentence without a final full stop.
	Text string
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error { return e.Err }
