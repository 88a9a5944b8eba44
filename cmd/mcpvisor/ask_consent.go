package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// samplesPerYes is how many requests for the model one yes is for. The person sees the first of them, and the next
	// one after the last.
	samplesPerYes = 20
	// samplesAtOnce and samplesOfOne bound the sampling commands that run at a time, of all servers and of one.
	samplesAtOnce = 4
	samplesOfOne  = 2
)

// consents counts the requests for the model that the person has allowed, by server. Safe for concurrent use; the zero value is
// ready.
type consents struct {
	mu sync.Mutex
	of map[string]*consent // by server
}

type consent struct {
	left   int           // requests that the last yes is still for
	given  int           // requests that were allowed
	never  bool          // the person said no
	asking chan struct{} // closed when the open question is decided; nil without one
}

// next looks whether a request needs a question. It does if all are empty; wait is another one's question.
func (c *consents) next(server string) (allowed, never bool, wait <-chan struct{}, given int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]*consent{}
	}
	one := c.of[server]
	if one == nil {
		one = &consent{}
		c.of[server] = one
	}
	switch {
	case one.never:
		return false, true, nil, one.given
	case one.left > 0:
		one.left--
		one.given++
		return true, false, nil, one.given
	case one.asking != nil:
		return false, false, one.asking, one.given
	}
	one.asking = make(chan struct{})
	return false, false, nil, one.given
}

// decided ends the question of a server: more is how many requests it allows, the one that asked included.
func (c *consents) decided(server string, more int, never bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.of[server]
	one.never = never
	if more > 0 {
		one.left, one.given = more-1, one.given+1
	}
	close(one.asking)
	one.asking = nil
}

// allow asks the person, for samplesPerYes requests of a server at a time. A no is until mcpvisor ends.
//
// 2025-11-25, Sampling: "For trust & safety and security, there SHOULD always be a human in the loop with the ability to
// deny sampling requests."
func (s *sampler) allow(ctx context.Context, r messages.SampleRequest) error {
	refused := &messages.Error{Op: "sample", Class: messages.ClassDenied, Server: r.Server,
		Text: "the person does not let it use the model"}
	var given int
	for {
		allowed, never, wait, before := s.consents.next(r.Server)
		switch {
		case allowed:
			return nil
		case never:
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
	more, never := 0, false
	defer func() { s.consents.decided(r.Server, more, never) }() // also if the conversation panics
	err := s.desk.put(ctx, r.Server, askedByServer, func(t *talk) error {
		word, err := t.consent(r, s.command, given)
		switch word {
		case "yes":
			more = samplesPerYes
		case "once":
			more = 1
		case "no":
			never = true
		}
		return err
	})
	switch {
	case errors.Is(err, messages.ErrNotShown):
		return s.desk.unseen(r.Server, err)
	case err != nil || more == 0:
		return refused
	}
	return nil
}

// consent holds the conversation about the use of the model.
func (t *talk) consent(r messages.SampleRequest, command []string, given int) (string, error) {
	t.print("\nThe server %q wants an answer of your model. It asks:\n", messages.Line(r.Server, 60))
	t.excerpt(modelRequest(r.Params), 600)
	t.print("It would be given to: %s\n", messages.Line(strings.Join(command, " "), 200))
	if given > 0 {
		t.print("It was given %s before.\n", count(given, "request"))
	}
	return t.choose(fmt.Sprintf("Let it have this request and its next %d? [y]es, this one [o]nce or [n]o?", samplesPerYes-1),
		"yes", "once", "no")
}

// running bounds the sampling commands that run at a time. Safe for concurrent use; the zero value is ready.
type running struct {
	mu  sync.Mutex
	all chan struct{}
	of  map[string]chan struct{} // by server
}

// begin waits for a place. A server waits for one of its own first: so it has no more than that in the line for all.
func (r *running) begin(ctx context.Context, server string) (end func(), err error) {
	r.mu.Lock()
	if r.of == nil {
		r.all, r.of = make(chan struct{}, samplesAtOnce), map[string]chan struct{}{}
	}
	if r.of[server] == nil {
		r.of[server] = make(chan struct{}, samplesOfOne)
	}
	own, all := r.of[server], r.all
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
