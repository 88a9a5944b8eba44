package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// These bounds keep a server from using the model without the person noticing, and from starting many programs at once.
const (
	// samplesPerConsent is the number of requests for the model that one "yes" allows. The person sees the first of them, and
	// is asked again with the next one after the last.
	samplesPerConsent = 20
	// samplesAtOnce bounds the sampling commands that run at a time for all servers, samplesPerServer those for one. Further
	// requests wait in takeSlot.
	samplesAtOnce    = 4
	samplesPerServer = 2
)

// samplingConsents counts, by server, the requests for the model that the person has allowed. It is safe for concurrent use;
// the zero value is ready.
type samplingConsents struct {
	mu       sync.Mutex
	byServer map[string]*serverConsent // made at the first request
}

// serverConsent is the state of one server's consent, guarded by samplingConsents.mu.
type serverConsent struct {
	remaining    int           // requests that the last yes still allows
	allowedCount int           // requests that were allowed
	denied       bool          // the person said no; it holds until mcpvisor ends
	decision     chan struct{} // closed when the open question is decided; nil without one
}

// checkRequest decides whether a request of a server is allowed, denied, or needs a question. If allowed and denied are false
// and wait is nil, the caller must ask and then call recordAnswer; if wait is not nil, another request of the server is asking,
// and the caller calls again when wait is closed. given is the number of requests that were allowed so far.
func (c *samplingConsents) checkRequest(server string) (allowed, denied bool, wait <-chan struct{}, given int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byServer == nil {
		c.byServer = map[string]*serverConsent{}
	}
	entry := c.byServer[server]
	if entry == nil {
		entry = &serverConsent{}
		c.byServer[server] = entry
	}
	switch {
	case entry.denied:
		return false, true, nil, entry.allowedCount
	case entry.remaining > 0:
		entry.remaining--
		entry.allowedCount++
		return true, false, nil, entry.allowedCount
	case entry.decision != nil:
		return false, false, entry.decision, entry.allowedCount
	}
	entry.decision = make(chan struct{})
	return false, false, nil, entry.allowedCount
}

// recordAnswer ends the open question of a server: more is the number of requests that the answer allows, including the one
// that asked. It wakes the requests that wait for this answer, the first of which asks again if none are left.
func (c *samplingConsents) recordAnswer(server string, more int, denied bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.byServer[server]
	entry.denied = denied
	if more > 0 {
		entry.remaining, entry.allowedCount = more-1, entry.allowedCount+1
	}
	close(entry.decision)
	entry.decision = nil
}

// requestConsent returns nil if the request may use the model, and asks the person once for samplesPerConsent requests of a
// server. A "no" holds until mcpvisor ends, so that a server cannot wear the person down.
//
// 2025-11-25, Sampling: "For trust & safety and security, there SHOULD always be a human in the loop with the ability to
// deny sampling requests."
func (s *sampler) requestConsent(ctx context.Context, r messages.SampleRequest) error {
	refused := &messages.Error{Op: "sample", Class: messages.ClassDenied, Server: r.Server,
		Text: "the person does not let it use the model"}
	var given int
	for {
		allowed, denied, wait, before := s.consents.checkRequest(r.Server)
		switch {
		case allowed:
			return nil
		case denied:
			return refused
		}
		if given = before; wait == nil {
			break
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	more, denied := 0, false
	defer func() { s.consents.recordAnswer(r.Server, more, denied) }() // it runs even if the conversation panics, or every later request would wait for ever
	err := s.prompter.promptPerson(ctx, r.Server, serverPrompt, func(t *Conversation) error {
		word, err := t.askConsent(r, s.command, given)
		switch word {
		case "yes":
			more = samplesPerConsent
		case "once":
			more = 1
		case "no":
			denied = true
		}
		return err
	})
	switch {
	case errors.Is(err, messages.ErrNotShown):
		return s.prompter.reportUnseen(r.Server, err)
	case err != nil || more == 0:
		return refused
	}
	return nil
}

// askConsent holds the conversation about the use of the model, and returns the chosen word: yes, once or no.
func (t *Conversation) askConsent(r messages.SampleRequest, command []string, given int) (string, error) {
	t.Print("\nThe server %q wants an answer of your model. It asks:\n", messages.Line(r.Server, 60))
	t.printExcerpt(modelRequest(r.Params), 600)
	t.Print("It would be given to: %s\n", messages.Line(strings.Join(command, " "), 200))
	if given > 0 {
		t.Print("It was given %s before.\n", terminal.CountOf(given, "request"))
	}
	return t.ChooseWord(fmt.Sprintf("Let it have this request and its next %d? [y]es, this one [o]nce or [n]o?", samplesPerConsent-1),
		"yes", "once", "no")
}

// samplingSlots bounds the sampling commands that run at a time. It is safe for concurrent use; the zero value is ready.
type samplingSlots struct {
	mu       sync.Mutex
	all      chan struct{}
	byServer map[string]chan struct{} // by server
}

// takeSlot waits for a free slot, and returns the function that frees it. A server waits for one of its own slots first, so
// that a busy server never has more than samplesPerServer requests in the queue for the common slots. The order is the same for
// all, so that no two requests can block each other.
func (r *samplingSlots) takeSlot(ctx context.Context, server string) (end func(), err error) {
	r.mu.Lock()
	if r.byServer == nil {
		r.all, r.byServer = make(chan struct{}, samplesAtOnce), map[string]chan struct{}{}
	}
	if r.byServer[server] == nil {
		r.byServer[server] = make(chan struct{}, samplesPerServer)
	}
	own, all := r.byServer[server], r.all
	r.mu.Unlock()
	select {
	case own <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case all <- struct{}{}:
	case <-ctx.Done():
		<-own
		return nil, ctx.Err()
	}
	return func() { <-all; <-own }, nil
}
