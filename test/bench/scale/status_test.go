package scale

import "testing"

// statusBound is the greatest number of allocations that the status of one server may cost, one tool included.
const statusBound = 8

func TestStatusIsCheap(t *testing.T) {
	ctx, n := bounded(t), 500
	m, err := startManager(ctx, serverSpecs("in process", n, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer closeWithin(m, &err)
	if err := awaitConnected(ctx, m); err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(10, func() { m.Status() }) / float64(n); got > statusBound {
		t.Errorf("%.1f allocations for the status of a server, at most %d are allowed", got, statusBound)
	}
}
