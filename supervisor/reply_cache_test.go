package supervisor

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

var zeroes = make([]byte, 20<<20)

func answerOf(id string, size int) *messages.CallToolReply {
	return &messages.CallToolReply{CallId: id, Outcome: string(messages.OutcomeResult), Result: zeroes[:size]}
}

// 400 answers of 256 KiB do not keep 100 MB, and none of their calls runs again.
func TestAnswersAreRememberedInBoundedSpace(t *testing.T) {
	var r replyCache
	now := time.Now()
	for i := range 400 {
		r.addReply(answerOf(fmt.Sprint(i), 256<<10), now)
	}
	kept, gone := 0, 0
	for i := range 400 {
		reply := r.findReply(fmt.Sprint(i), now)
		switch {
		case reply == nil:
			t.Fatalf("call %d may run again", i)
		case len(reply.GetResult()) > 0:
			kept += len(reply.GetResult())
		case reply.GetOutcome() != "unknown" || !strings.Contains(reply.GetFailure().GetText(), "ended with result"):
			t.Errorf("%v", reply)
		default:
			gone++
		}
	}
	if kept > rememberedBytes || kept < rememberedBytes*9/10 || gone != 400-kept/(256<<10) {
		t.Errorf("%d bytes kept, %d answers gone", kept, gone)
	}
	if r.findReply("399", now.Add(rememberedTime)) != nil || len(r.byID)+len(r.order) > 0 || r.bytes != 0 {
		t.Errorf("after %v: %d ids, %d bytes", rememberedTime, len(r.byID), r.bytes)
	}
}

// Ids that have no answers worth mentioning are bounded by their number: the oldest may run again, and no other.
func TestIdsAreRememberedInBoundedNumber(t *testing.T) {
	var r replyCache
	now := time.Now()
	for i := range rememberedCalls + 10 {
		r.addReply(answerOf(fmt.Sprint(i), 1), now)
	}
	for i := range rememberedCalls + 10 {
		if known := r.findReply(fmt.Sprint(i), now) != nil; known != (i >= 10) {
			t.Errorf("call %d is remembered: %v", i, known)
		}
	}
	if len(r.byID) != rememberedCalls || len(r.order) != rememberedCalls {
		t.Errorf("%d ids, %d in order", len(r.byID), len(r.order))
	}
}

// Whatever ends and whenever: the bounds hold, the account is right, and the newest are remembered.
func TestRemembered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r replyCache
		now, long := time.Now(), strings.Repeat("x", 1<<20)
		for i := range rapid.IntRange(1, 60).Draw(t, "calls") {
			id := fmt.Sprint(i) + long[:rapid.SampledFrom([]int{0, 0, len(long)}).Draw(t, "id")]
			now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "time"))
			r.addReply(answerOf(id, rapid.SampledFrom([]int{0, 10, 1 << 20, 20 << 20}).Draw(t, "size")), now)
			sum := 0
			for k, c := range r.order {
				sum += c.bytes
				if c.bytes != costOf(c.reply) || k < r.answerless && len(c.reply.GetResult()) > 0 || r.byID[c.reply.GetCallId()] != c {
					t.Fatalf("entry %d of %d is not what it says", k, len(r.order))
				}
			}
			if sum != r.bytes || sum > rememberedBytes || len(r.order) != len(r.byID) || len(r.order) > rememberedCalls {
				t.Fatalf("%d bytes, %d said, %d calls, %d ids", sum, r.bytes, len(r.order), len(r.byID))
			}
			if r.findReply(id, now) == nil {
				t.Fatal("the newest is forgotten")
			}
		}
	})
}

// Replies that no sender asks for again are dropped without another call.
func TestRememberedCallsAgeByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept, flying, armed atomic.Int64
		m, err := Start(t.Context(), Config{
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": echoServer},
			Servers:   map[string]Spec{"a": {Type: messages.SDK}},
			ActorOptions: func(name string) []actor.PropsOption {
				if name != "entry" {
					return nil
				}
				return []actor.PropsOption{actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
					return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
						next(c, envelope)
						e := c.Actor().(*entryActor)
						kept.Store(int64(len(e.endedCalls.byID)))
						flying.Store(int64(len(e.calls)))
						armed.Store(0)
						if e.forgetTimer != nil {
							armed.Store(1)
						}
					}
				})}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = m.Close(context.Background())
			time.Sleep(time.Millisecond) // see CloseAll
		}()
		for range 3 {
			if _, err := m.system.Root.RequestFuture(m.PID(), &messages.CallTool{CallId: "1", Tool: "mcp__a__x"}, time.Minute).Result(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if kept.Load() != 1 || flying.Load() != 0 || armed.Load() != 1 {
			t.Errorf("%d calls are remembered, %d are in flight", kept.Load(), flying.Load())
		}
		time.Sleep(rememberedTime)
		synctest.Wait()
		if kept.Load() != 0 || armed.Load() != 0 {
			t.Errorf("%d calls are remembered after %v", kept.Load(), rememberedTime)
		}
	})
}

// Where an answer is not kept any more, its call is said to have ended, and with what; a failure has no answer, and stays as it is.
func TestWhatIsSaidInThePlaceOfAnAnswer(t *testing.T) {
	got := withoutAnswer(answerOf("c", 100))
	if got.GetCallId() != "c" || len(got.GetResult()) != 0 || got.GetOutcome() != string(messages.OutcomeUnknown) ||
		messages.Class(got.GetFailure().GetClass()) != messages.ClassExhausted || !strings.Contains(got.GetFailure().GetText(), "ended with result") {
		t.Errorf("of an answer: %+v", got)
	}
	failed := callReply("c", "", nil, &messages.Error{Op: "call", Outcome: messages.OutcomeRejected, Class: messages.ClassDenied, Text: "no"})
	if got := withoutAnswer(failed); got != failed {
		t.Errorf("of a failure: %+v", got)
	}
}
