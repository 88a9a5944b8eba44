package inprocess

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
)

// TestCrewLeaves: as many goroutines as were busy at once, fewer when fewer are needed, and none when nothing comes.
func TestCrewLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c workerPool
		c.startAnswering(func(m transports.Message) { time.Sleep(time.Duration(m.ID) * time.Millisecond) })
		hands := func() int {
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.workers
		}
		for range 16 {
			c.dispatchMessage(transports.Message{ID: 50}) // they have all answered when the next one comes
		}
		if n := hands(); n != 16 {
			t.Errorf("%d goroutines for 16 messages at once", n)
		}
		for step, want := range []int{8, 4, 2, 1, 1, 1} { // one call at a time, for six seconds
			for range 10 {
				time.Sleep(100 * time.Millisecond)
				c.dispatchMessage(transports.Message{ID: 1})
			}
			time.Sleep(time.Millisecond)
			if n := hands(); n != want {
				t.Errorf("%d goroutines after %d s of one call at a time, want %d", n, step+1, want)
			}
		}
		time.Sleep(2 * workerIdleCheck)
		if n := hands(); n != 0 {
			t.Errorf("%d goroutines after two seconds without a message", n)
		}
		time.Sleep(workerIdleCheck)
		synctest.Wait()
		c.mu.Lock()
		if c.timer != nil {
			t.Error("somebody still looks after nobody")
		}
		c.mu.Unlock()
		c.dispatchMessage(transports.Message{ID: 500})
		begin := time.Now()
		gone := c.close()
		select {
		case <-gone:
			t.Error("everybody has gone while one answers")
		default:
		}
		if <-gone; time.Since(begin) != 500*time.Millisecond {
			t.Errorf("gone after %v", time.Since(begin))
		}
	})
}

// TestCrewWithoutWork: a connection whose server reads its requests has no goroutines and no timer of this kind.
func TestCrewWithoutWork(t *testing.T) {
	var c workerPool
	<-c.close()
}
