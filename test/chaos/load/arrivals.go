package load

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Arrivals are the planned starts of the calls of one stream, in rising order. The same seed, place and stream give the same
// ones. It is not safe for concurrent use.
type Arrivals struct {
	stream scenario.PlannedLoad
	rnd    *rand.Rand
	at     float64 // ns since the start of the run
	more   int     // so many calls more begin in this instant
}

// NewArrivals draws from the seed of a run for the stream at this place of Plan.Load.
func NewArrivals(seed uint64, streamIndex int, s scenario.PlannedLoad) *Arrivals {
	h := sha256.New()
	var numbers [16]byte
	binary.LittleEndian.PutUint64(numbers[:8], seed)
	binary.LittleEndian.PutUint64(numbers[8:], uint64(streamIndex))
	h.Write([]byte("load\x00" + s.Server + "\x00"))
	h.Write(numbers[:])
	return &Arrivals{stream: s, rnd: rand.New(rand.NewChaCha8([32]byte(h.Sum(nil)))), at: float64(s.Begin)}
}

// Next is the planned start of the next call; false if the stream has ended. A stream without a positive rate has no call.
func (a *Arrivals) Next() (time.Duration, bool) {
	if !(a.stream.Rate > 0) {
		return 0, false
	}
	if a.more > 0 {
		a.more--
		return time.Duration(a.at), true
	}
	together := max(a.stream.Together, 1)
	a.at += a.rnd.ExpFloat64() / a.stream.Rate * float64(together) * float64(time.Second)
	if a.at >= float64(a.stream.End) {
		a.at = float64(a.stream.End) // stays at the end, however often it is asked
		return 0, false
	}
	a.more = together - 1
	return time.Duration(a.at), true
}

// Call is one planned call.
type Call struct {
	// ID is unique in a run: c1, c2, … in order of time. It is what the tool gets as argument "call".
	ID string
	// At is its planned start, since the start of the run.
	At time.Duration
	// StreamIndex is that of its stream in Plan.Load.
	StreamIndex int
	Stream      scenario.PlannedLoad
}

// Caller is on whose behalf the call is made: one of the stream's callers, by turns. It is empty for a stream that says nothing of
// callers.
func (c Call) Caller() string {
	if c.Stream.Callers < 2 {
		return ""
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(c.ID, "c"))
	return "caller-" + strconv.Itoa(c.StreamIndex+1) + "-" + strconv.Itoa(n%c.Stream.Callers+1)
}

// Schedule is every call of a plan in order of time; of calls at the same nanosecond the one of the earlier stream is
// first. It holds one time for each stream, however long the run. It is not safe for concurrent use.
type Schedule struct {
	due   startHeap
	calls int
}

// NewSchedule draws the calls of a plan.
func NewSchedule(p scenario.Plan) *Schedule {
	s := &Schedule{}
	for i, stream := range p.Load {
		a := NewArrivals(p.Seed, i, stream)
		if at, ok := a.Next(); ok {
			s.due = append(s.due, nextStart{at, i, a})
		}
	}
	heap.Init(&s.due)
	return s
}

// Next is the next call; false if there is none any more.
func (s *Schedule) Next() (Call, bool) {
	if len(s.due) == 0 {
		return Call{}, false
	}
	first := s.due[0]
	s.calls++
	c := Call{ID: "c" + strconv.Itoa(s.calls), At: first.at, StreamIndex: first.streamIndex, Stream: first.arrivals.stream}
	if at, ok := first.arrivals.Next(); ok {
		s.due[0].at = at
		heap.Fix(&s.due, 0)
	} else {
		heap.Pop(&s.due)
	}
	return c, true
}

// nextStart is the next planned start of one stream.
type nextStart struct {
	at          time.Duration
	streamIndex int
	arrivals    *Arrivals
}

// startHeap implements heap.Interface.
type startHeap []nextStart

func (d startHeap) Len() int { return len(d) }
func (d startHeap) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].streamIndex < d[j].streamIndex
}
func (d startHeap) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *startHeap) Push(x any)   { *d = append(*d, x.(nextStart)) }
func (d *startHeap) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
