package client

import (
	"fmt"
	"sync"
)

// ProgressCalls hands progress to the calls that wait for it, by their tokens. An adapter of a library whose notifications come to one
// function for all calls uses it. The zero value is ready.
type ProgressCalls struct {
	mu    sync.Mutex
	count int
	calls map[string]func(message string)
}

// Begin makes the token of a call; done ends it.
func (p *ProgressCalls) Begin(progress func(message string)) (token string, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[string]func(string){}
	}
	p.count++
	token = fmt.Sprintf("progress-%d", p.count)
	p.calls[token] = progress
	return token, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, token)
	}
}

// Tell hands a message to the call of a token, and drops that of one which nobody has.
func (p *ProgressCalls) Tell(token any, message string) {
	p.mu.Lock()
	progress := p.calls[fmt.Sprint(token)]
	p.mu.Unlock()
	if progress != nil {
		progress(message)
	}
}
