package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// sink is a writer whose behaviour a test chooses.
type sink struct {
	mu    sync.Mutex
	data  bytes.Buffer
	calls int
	do    func(call int, p []byte) (int, error) // how many bytes are taken
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.calls++
	call, do := s.calls, s.do
	s.mu.Unlock()
	n, err := len(p), error(nil)
	if do != nil {
		n, err = do(call, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Write(p[:n])
	return n, err
}

func (s *sink) behave(do func(int, []byte) (int, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

func (s *sink) records(t *testing.T) (all []audit.Record, torn int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	torn, err := audit.Read(bytes.NewReader(s.data.Bytes()), func(r audit.Record) bool {
		all = append(all, r)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, torn
}

func full(int, []byte) (int, error) { return 0, syscall.ENOSPC }

func call(i int) audit.Record {
	return audit.Record{Kind: audit.KindCall, Server: "files", Tool: "read", Sent: i + 1}
}

// account fails unless every number of the run from 1 to last stands in a record or in one of kind lost, once.
func account(t *testing.T, all []audit.Record, last uint64) (written, lost uint64) {
	t.Helper()
	next := uint64(1)
	for _, r := range all {
		if r.Lost != nil {
			if r.Lost.From != next || r.Lost.To < r.Lost.From || r.Lost.To-r.Lost.From+1 != r.Lost.Records {
				t.Fatalf("number %d is next, and the record is %+v", next, r.Lost)
			}
			sum := uint64(0)
			for _, n := range r.Lost.Kinds {
				sum += n
			}
			if sum != r.Lost.Records || r.Lost.Until.Before(r.Lost.Since) {
				t.Fatalf("%+v", r.Lost)
			}
			lost += r.Lost.Records
			next = r.Lost.To + 1
		}
		if r.Seq != next {
			t.Fatalf("number %d is next, and the record has %d", next, r.Seq)
		}
		next++
		written++
	}
	if next != last+1 {
		t.Fatalf("the record ends with number %d of %d", next-1, last)
	}
	return written, lost
}

func TestRecordsAreWrittenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		l := audit.New(&s, audit.Options{})
		for i := range 100 {
			l.Add(call(i))
		}
		time.Sleep(time.Second)
		all, _ := s.records(t)
		if written, lost := account(t, all, 100); written != 100 || lost != 0 {
			t.Errorf("%d written, %d lost", written, lost)
		}
		if s.calls != 1 {
			t.Errorf("%d writes for records of one moment", s.calls)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		l.Add(call(0))
		if st := l.Stats(); st.Added != 101 || st.Written != 100 || st.Lost != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestFullDiskInTheMiddle: what the bound holds is written late and in order, and the rest is told exactly where it is
// missing. No call waits: in virtual time the calls take no time at all.
func TestFullDiskInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		l := audit.New(&s, audit.Options{MaxRecords: 1000})
		start := time.Now()
		for i := range 10_000 {
			if i == 3000 {
				time.Sleep(time.Second)
				s.behave(full)
			}
			if i == 7000 {
				s.behave(nil)
				time.Sleep(10 * time.Second)
			}
			if i%500 == 499 && (i < 3000 || i > 7000) {
				time.Sleep(100 * time.Millisecond)
			}
			before := time.Now()
			l.Add(call(i))
			if !time.Now().Equal(before) {
				t.Fatal("a call waited")
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, torn := s.records(t)
		st := l.Stats()
		written, lost := account(t, all, st.Added)
		if torn != 0 || written != st.Written || lost != st.Lost || st.Waiting != 0 || lost < 3000 || lost > 4000 {
			t.Errorf("%d written, %d lost, %d torn; %+v", written, lost, torn, st)
		}
		for _, r := range all {
			if r.Lost != nil && (r.Lost.Kinds[audit.KindCall] != r.Lost.Records || r.Lost.Since.Before(start)) {
				t.Errorf("%+v", r.Lost)
			}
		}
	})
}

// TestRareRecordsHaveRoom: calls cannot take the room of approvals.
func TestRareRecordsHaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{do: full}
		l := audit.New(&s, audit.Options{MaxRecords: 80})
		for i := range 200 {
			l.Add(call(i))
		}
		l.Add(audit.Record{Kind: audit.KindApproval, Change: "approve", Server: "files"})
		s.behave(nil)
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, _ := s.records(t)
		account(t, all, l.Stats().Added)
		if last := all[len(all)-1]; last.Kind != audit.KindApproval || len(all) != 72 {
			t.Errorf("%d records, the last is %+v", len(all), last)
		}
	})
}

// TestTriesAgain: the writer is tried after 100 ms, then after twice as long each time, at most 5 s.
func TestTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		s := sink{do: func(int, []byte) (int, error) {
			at = append(at, time.Since(start))
			return 0, syscall.EIO
		}}
		l := audit.New(&s, audit.Options{})
		l.Add(call(1))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		want := []int{10, 110, 310, 710, 1510, 3110, 6310, 11310, 16310}
		if len(at) != len(want) {
			t.Fatalf("%v", at)
		}
		for i := range want {
			if at[i].Milliseconds() != int64(want[i]) {
				t.Fatalf("%v", at)
			}
		}
		if st := l.Stats(); st.Failing == "" || st.Since.IsZero() || st.Waiting != 1 {
			t.Errorf("%+v", st)
		}
		err := l.Close(t.Context())
		if err == nil || !strings.Contains(err.Error(), "1 are lost") || len(at) != len(want)+1 {
			t.Errorf("%v after %d tries", err, len(at))
		}
		if st := l.Stats(); st.Lost != 1 || st.Waiting != 0 || st.Added != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestTornLine: of a line that the disk took a part of, the whole stands on a new one.
func TestTornLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{do: func(call int, p []byte) (int, error) {
			switch call {
			case 1: // the first line and a part of the second
				return bytes.IndexByte(p, '\n') + 20, syscall.ENOSPC
			case 2: // less than the newline that ends the torn one
				return 0, syscall.ENOSPC
			case 3: // that newline and no more
				return 1, syscall.ENOSPC
			}
			return len(p), nil
		}}
		l := audit.New(&s, audit.Options{})
		for i := range 5 {
			l.Add(call(i))
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, torn := s.records(t)
		account(t, all, 5)
		if torn != 1 || len(all) != 5 {
			t.Errorf("%d torn, %d records", torn, len(all))
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWriterThatPanics: a panic is an error as any other.
func TestWriterThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{do: func(call int, p []byte) (int, error) {
			if call < 3 {
				panic("no")
			}
			return len(p), nil
		}}
		l := audit.New(&s, audit.Options{})
		l.Add(call(0))
		time.Sleep(time.Minute)
		all, _ := s.records(t)
		account(t, all, 1)
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWriterThatLies: one that takes less than it is given without an error, or claims more, or less than nothing.
func TestWriterThatLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var data bytes.Buffer
		n := 0
		w := writerFunc(func(p []byte) (int, error) {
			switch n++; n {
			case 1:
				return -5, nil
			case 2:
				data.Write(p[:10])
				return 10, nil
			}
			data.Write(p)
			return len(p) + 5, nil
		})
		l := audit.New(w, audit.Options{})
		l.Add(call(0))
		l.Add(call(1))
		if err := l.Close(t.Context()); err != nil {
			time.Sleep(time.Minute)
		}
		st := l.Stats()
		if st.Added != st.Written+st.Lost+st.Waiting {
			t.Errorf("%+v", st)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestWriterThatNeverReturns: neither a call nor Close waits for it, and memory is bounded.
func TestWriterThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := sink{do: func(_ int, p []byte) (int, error) {
			<-release
			return len(p), nil
		}}
		l := audit.New(&s, audit.Options{MaxBytes: 10_000})
		l.Add(call(0))
		time.Sleep(time.Second) // it is in the writer now
		start := time.Now()
		for i := range 1000 {
			l.Add(call(i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := l.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := l.Close(ctx); err == nil {
			t.Error("it says that everything is written")
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("%v", took)
		}
		st := l.Stats()
		if st.Added != 1001 || st.Waiting == 0 || st.Waiting*100 > 10_000 || st.Lost+st.Waiting != 1001 {
			t.Errorf("%+v", st)
		}
		close(release)
		synctest.Wait()
		all, _ := s.records(t)
		account(t, all, l.Stats().Added)
	})
}

// TestFlushWaitsForTheLineOfAGap: a loss is reported in a line of its own, which is queued after all records were written. Flush
// returned while the writer still had it.
func TestFlushWaitsForTheLineOfAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := sink{do: full}
		l := audit.New(&s, audit.Options{MaxRecords: 8})
		for i := range 20 {
			l.Add(call(i))
		}
		synctest.Wait()
		s.behave(func(_ int, p []byte) (int, error) {
			if bytes.Contains(p, []byte(`"lost"`)) {
				<-release
			}
			return len(p), nil
		})
		flushed := make(chan error, 1)
		go func() { flushed <- l.Flush(t.Context()) }()
		time.Sleep(time.Minute)
		if len(flushed) > 0 {
			t.Error("Flush has returned, and the line of the gap is not written")
		}
		close(release)
		if err := <-flushed; err != nil {
			t.Error(err)
		}
		all, _ := s.records(t)
		if _, lost := account(t, all, l.Stats().Added); lost == 0 {
			t.Error("nothing was lost")
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestManyWriters: whatever the order, every number is there once.
func TestManyWriters(t *testing.T) {
	var s sink
	l := audit.New(&s, audit.Options{MaxRecords: 500})
	s.behave(func(call int, p []byte) (int, error) {
		if call%3 == 0 {
			return len(p) / 2, io.ErrShortWrite
		}
		return len(p), nil
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				l.Add(call(i))
			}
		})
	}
	wg.Wait()
	s.behave(nil)
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, _ := s.records(t)
	st := l.Stats()
	if written, lost := account(t, all, st.Added); written != st.Written || lost != st.Lost || st.Waiting != 0 {
		t.Errorf("%d, %d; %+v", written, lost, st)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A writer that takes a line but for its end has a record: written once more, it was read twice.
func TestAShortWriteAtAnyPlaceRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := 0; ; at++ {
			var s sink
			s.behave(func(calls int, p []byte) (int, error) {
				if calls == 1 && at < len(p) {
					return at, io.ErrShortWrite
				}
				return len(p), nil
			})
			l := audit.New(&s, audit.Options{})
			for i := range 3 {
				l.Add(call(i))
			}
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			all, _ := s.records(t)
			if written, lost := account(t, all, 3); written != 3 || lost != 0 {
				t.Errorf("%d bytes were taken first: %d written, %d lost", at, written, lost)
			}
			if s.calls == 1 {
				return
			}
		}
	})
}

func ExampleLog() {
	var out bytes.Buffer
	l := audit.New(&out, audit.Options{})
	l.Add(audit.Record{Kind: audit.KindApproval, Change: "approve", Server: "files"})
	_ = l.Close(context.Background())
	_, _ = audit.Read(&out, func(r audit.Record) bool {
		fmt.Println(r.Seq, r.Kind, r.Change, r.Server)
		return true
	})
	// Output: 1 approval approve files
}

func BenchmarkAdd(b *testing.B) {
	l := audit.New(io.Discard, audit.Options{})
	defer l.Close(context.Background())
	args := []byte(`{"path": "notes/2026/november.md", "limit": 100, "filter": "a few words of text"}`)
	hide := func(s string) string { return s }
	b.ReportAllocs()
	for b.Loop() {
		r := call(1)
		audit.Hash.AddTo(&r, args, hide)
		l.Add(r)
	}
}
