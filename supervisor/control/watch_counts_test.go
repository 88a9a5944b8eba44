package control

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// slowServer has one subscription. A change takes effect before it is answered, or on arrival and is answered at once.
type slowServer struct {
	subscribed          bool
	subscribe, farewell time.Duration
}

func (s *slowServer) SubscribeResource(context.Context, string, string) error {
	s.subscribed = true
	time.Sleep(s.subscribe)
	return nil
}

func (s *slowServer) UnsubscribeResource(context.Context, string, string) error {
	time.Sleep(s.farewell)
	s.subscribed = false
	return nil
}

// TestALeavingWatcherEndsNoNewSubscription checks both orders in which a watcher that leaves as the last can meet a new one: the new
// one keeps the subscription. When it has left too, nothing is subscribed and nothing is remembered.
func TestALeavingWatcherEndsNoNewSubscription(t *testing.T) {
	for name, server := range map[string]*slowServer{
		"the unsubscription is on its way":           {farewell: time.Second},
		"the subscription is not answered yet":       {subscribe: time.Second},
		"the subscription takes longer than leaving": {subscribe: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var x watchCounts
				add := func() (end func()) {
					end, err := x.addWatcher(t.Context(), server, "s", "x:///1")
					if err != nil {
						t.Error(err)
					}
					return end
				}
				endFirst := add()
				left := make(chan struct{})
				leave := func() { defer close(left); endFirst() }
				var endSecond func()
				if server.farewell > 0 {
					go leave()
					synctest.Wait()
					endSecond = add()
				} else {
					go func() { synctest.Wait(); leave() }()
					endSecond = add()
				}
				<-left
				if !server.subscribed {
					t.Error("the second watcher's subscription has ended")
				}
				endSecond()
				if server.subscribed || len(x.resources) > 0 {
					t.Errorf("after the last: subscribed %v, %d resources", server.subscribed, len(x.resources))
				}
			})
		})
	}
}

// TestAWatcherWaitsForItsTurnAsLongAsItsContext checks that a watcher which gives up while another one subscribes leaves nothing.
func TestAWatcherWaitsForItsTurnAsLongAsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x watchCounts
		server := &slowServer{subscribe: time.Hour}
		first := make(chan func())
		go func() {
			end, _ := x.addWatcher(t.Context(), server, "s", "x:///1")
			first <- end
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := x.addWatcher(ctx, server, "s", "x:///1"); !errors.Is(err, context.DeadlineExceeded) || messages.ClassOf(err) != messages.ClassTimeout {
			t.Errorf("the second watcher got %v", err)
		}
		(<-first)()
		if server.subscribed || len(x.resources) > 0 {
			t.Errorf("after the last: subscribed %v, %d resources", server.subscribed, len(x.resources))
		}
	})
}
