// Package differential sends the same random requests to a server and to the gateway before another one of its kind, in this process
// and through the command connect, and compares what comes back: results, errors, notifications and questions, byte for byte but for
// spaces between tokens, ids, progress tokens, cursors and the members of _meta that belong to one hop.
//
//	make differential                 100,000 requests
//	go test ./test/differential -run TestGatewayAnswersAsTheServer -requests 5000 -seed 77
//
// The server is a mirror: its answers show what it received, and depend on nothing else. Requests that no server should see (no
// JSON-RPC, a tool without a name, a method that the protocol does not have) are answered by the gateway in its own words; of those
// the code is compared.
package differential

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	requests  = flag.Int("requests", 3000, "how many random requests are compared")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first request")
)

func TestMain(m *testing.M) {
	if beMirror() {
		return
	}
	os.Exit(m.Run())
}

// maxShown bounds the differences that are shown of each server: the first few say the most.
const maxShown = 8

func TestGatewayAnswersAsTheServer(t *testing.T) {
	begin := time.Now()
	var all sync.WaitGroup
	for i, c := range cells {
		s := openStand(t, c, views)
		all.Go(func() {
			found := 0
			for n := i; n < *requests && found < maxShown; n += len(cells) {
				seed, which := *firstSeed+uint64(n), n/len(cells)%len(views)
				q := newRequest(seed, c.modern)
				direct, through, err := s.compare(q, which)
				if err != nil {
					t.Errorf("%s, seed %d: %v\n%s", c, seed, err, cut(q.String()))
					return
				}
				if direct != through {
					found++
					d := s.shrink(difference{c, views[which], seed, q, direct, through}, which)
					t.Error(d)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d requests in %s", *requests, time.Since(begin).Round(time.Millisecond))
}

// changing is a client whose answers were changed on the way.
type changing struct {
	client
	from, to string
}

func (c changing) exchange(q request, body string) (exchange, error) {
	e, err := c.client.exchange(q, body)
	e.answer = bytes.ReplaceAll(e.answer, []byte(c.from), []byte(c.to))
	return e, err
}

// A change that only some answers show is found, and shown with a request that has nothing else in it.
func TestADifferenceIsFoundAndShrunk(t *testing.T) {
	s := openStand(t, cell{"http", false}, views[:1])
	s.through[0] = changing{s.through[0], "18446744073709551616", "18446744073709552000"}
	for seed := uint64(1); seed < 20_000; seed++ {
		q := newRequest(seed, false)
		direct, through, err := s.compare(q, 0)
		if err != nil {
			t.Fatal(err)
		}
		if direct == through {
			continue
		}
		d := s.shrink(difference{s.cell, views[0], seed, q, direct, through}, 0)
		if text := d.request.String(); len(text) > 200 {
			t.Errorf("the difference is shown with %s", text)
		}
		if !strings.Contains(d.String(), "18446744073709552000") {
			t.Error(d)
		}
		return
	}
	t.Error("the difference was not found")
}
