package supervisor

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// An actor gets the first report of a call's progress at once, later ones a tenth of a second apart, each time the newest, and the last one
// before the end of the call; none comes after it.
func TestProgressIsSentAtItsDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type sent struct {
			progress float64
			after    time.Duration
		}
		began := time.Now()
		var got []sent
		p := &progressSender{id: "c", post: func(m *messages.CallProgress) {
			if m.GetCallId() != "c" {
				t.Errorf("it is sent for call %q", m.GetCallId())
			}
			got = append(got, sent{m.GetProgress(), time.Since(began)})
		}}
		for i := range 19 { // one every 30 ms, with a pause of a second after the tenth
			p.addProgress(messages.Progress{Progress: float64(i)})
			if time.Sleep(30 * time.Millisecond); i == 9 {
				time.Sleep(time.Second)
			}
		}
		p.addProgress(messages.Progress{Progress: 19})
		p.endProgress()
		p.addProgress(messages.Progress{Progress: 20})
		time.Sleep(time.Second)
		const ms = time.Millisecond
		want := []sent{{0, 0}, {3, 100 * ms}, {6, 200 * ms}, {9, 300 * ms}, {10, 1300 * ms}, {13, 1400 * ms}, {16, 1500 * ms}, {19, 1570 * ms}}
		for i := range got {
			got[i].after = got[i].after.Round(ms)
		}
		if !slices.Equal(got, want) {
			t.Errorf("sent %v\nwant %v", got, want)
		}
	})
}

// An actor answers a server's request with a result. A refusal, or no result, refuses it.
func TestWhatAnActorAnswersAServer(t *testing.T) {
	for what, c := range map[string]struct {
		reply   *messages.ServerRequestReply
		refused bool
	}{
		"a result":               {&messages.ServerRequestReply{Result: []byte(`{"a":1}`)}, false},
		"a refusal":              {&messages.ServerRequestReply{Refused: true}, true},
		"no result":              {&messages.ServerRequestReply{}, true},
		"a refusal and a result": {&messages.ServerRequestReply{Refused: true, Result: []byte(`{"a":1}`)}, true},
	} {
		if a := handlerAnswerOf(c.reply); (a.err != nil) != c.refused || !c.refused && string(a.result) != `{"a":1}` || c.refused && a.result != nil {
			t.Errorf("%s: %s, %v", what, a.result, a.err)
		}
	}
}
