package actors

// Trace collects what the audit log has to say of a request beside its end. Only the goroutine of the request writes it.
type Trace struct {
	// Epoch is that of the last connection that got the request, Attempts how many did.
	Epoch    uint64
	Attempts int
	// Decision, Rule and Source are the rules' decision, Answer the person's if they asked.
	Decision, Rule, Source, Answer string
}

// noteConnection notes that a connection gets the request.
func (t *Trace) noteConnection(link *Link) {
	t.Epoch = link.Epoch
	t.Attempts++
}
