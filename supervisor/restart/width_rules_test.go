package restart

import "testing"

// The width is halved from what is used of it, never below two slots or all there are, and grows by one up to all of them. Only a start that has
// begun since the gate was narrowed says something about it.
func TestHowTheWidthChanges(t *testing.T) {
	for _, c := range []struct {
		now, most, unanswered, want int
	}{
		{8, 8, 8, 4}, {8, 8, 20, 4}, {8, 8, 5, 2}, {8, 8, 6, 3}, {8, 8, 1, 2}, {8, 8, 0, 2}, {4, 8, 8, 2}, {3, 8, 3, 2}, {2, 8, 8, 2}, {2, 2, 2, 2}, {1, 1, 1, 1},
	} {
		w := width{now: c.now, most: c.most, generation: 3}
		if w.narrow(2, c.unanswered); w.now != c.now || w.generation != 3 {
			t.Errorf("%+v: a start of before narrows the gate to %d", c, w.now)
		}
		if w.narrow(3, c.unanswered); w.now != c.want || w.generation != 4 {
			t.Errorf("%+v: narrowed to %d, generation %d", c, w.now, w.generation)
		}
		if w.widen(3); w.now != c.want {
			t.Errorf("%+v: a start of before widens the gate to %d", c, w.now)
		}
		if w.widen(4); w.now != min(c.want+1, c.most) || w.generation != 4 {
			t.Errorf("%+v: widened to %d, generation %d", c, w.now, w.generation)
		}
	}
}
