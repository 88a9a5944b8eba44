package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// endsInOrder notes in which order its sessions and their requests end.
type endsInOrder struct {
	*service
	mu    sync.Mutex
	ended []string
}

func (v *endsInOrder) noteEnd(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = append(v.ended, name)
}

func (v *endsInOrder) Handle(ctx context.Context, r *Request) ([]byte, *Error) {
	stop := r.cancel
	r.cancel = func() { v.noteEnd("request " + string(r.ID)); stop() }
	return v.service.Handle(ctx, r)
}

func (v *endsInOrder) Closed(s *Session) { v.noteEnd("session of " + s.Principal.Name) }

// Sessions and requests that end together end in the same order each time: servers hear of it in that order, and a run with another order each time
// could not be played again.
func TestEndsHaveOneOrder(t *testing.T) {
	var want []string
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			v := &endsInOrder{service: newService()}
			principals := map[string]Principal{}
			for _, name := range strings.Fields("a b c d e f g h i") {
				principals[name] = Principal{Name: name}
			}
			h := NewHandler(Options{Service: v, Authenticate: NewTokens(principals).Authenticate})
			var all sync.WaitGroup
			for name := range principals {
				id := open(t, h, "Authorization", "Bearer "+name)
				if name != "a" {
					continue
				}
				for n := range 9 {
					all.Go(func() {
						do(h, request(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hang"}`, n), "Mcp-Session-Id", id, "Authorization", "Bearer "+name))
					})
					<-v.hung
				}
			}
			past, cancel := context.WithCancel(t.Context())
			cancel()
			_ = h.Close(past)
			all.Wait()
			if want == nil {
				want = v.ended
			}
			if len(v.ended) != 18 || !slices.Equal(v.ended, want) {
				t.Errorf("ended\n%v, and before\n%v", v.ended, want)
			}
		})
	}
}
