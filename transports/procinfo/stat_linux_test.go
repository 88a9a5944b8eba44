package procinfo

import "testing"

func TestANameMayHoldAnything(t *testing.T) {
	p, err := parseStat([]byte("77 (a) S 1 (b) S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 1\n"))
	if err != nil || p != (Process{77, 5, 6, 7, 4711, "a) S 1 (b"}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("77 (a) S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 1"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := parseStat(b); err == nil && len(b) < 40 {
			t.Errorf("%q has 20 fields", b)
		}
	})
}
