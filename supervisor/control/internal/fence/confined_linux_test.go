package fence

import "testing"

func TestConfinementIsReadFromStatus(t *testing.T) {
	for text, want := range map[string][2]int{
		"Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n": {1, 3},
		"NoNewPrivs:\t0\nSeccomp:\t2\n":                                {0, 1},
		"NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n":           {0, 0},
		"": {0, 0},
	} {
		if n, f := parseIsolation([]byte(text)); n != want[0] || f != want[1] {
			t.Errorf("%q: %d, %d", text, n, f)
		}
	}
}

func FuzzConfinement(f *testing.F) {
	f.Add([]byte("NoNewPrivs:\t1\nSeccomp:\t2\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { parseIsolation(b) })
}
