package serve

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// endingService asks a question about each request, and answers the request in the moment in which it gives the question up.
type endingService struct{ *service }

func (endingService) Handle(ctx context.Context, r *Request) ([]byte, *Error) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { _, _ = r.Ask(ctx, "question", nil) }()
	synctest.Wait() // until the agent has it
	cancel()
	return []byte(`{"over":true}`), nil
}

// A question whose call has ended is taken back before the answer, which ends the stream on which it was asked: an agent without another stream
// would never hear of it, and its person answer nobody. Seed 30210762.
func TestQuestionIsTakenBackBeforeTheAnswer(t *testing.T) {
	for range 50 { // without the order the question would be taken back in time now and then
		synctest.Test(t, func(t *testing.T) {
			h := NewHandler(Options{Service: endingService{newService()}})
			session := open(t, h)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(`{"jsonrpc":"2.0","id":7,"method":"work"}`, "Mcp-Session-Id", session))
			got := w.Body.String()
			back, answer := strings.Index(got, `"method":"notifications/cancelled","params":{"requestId":1}`), strings.Index(got, `{"over":true}`)
			if back < 0 || answer < back || strings.Count(got, "notifications/cancelled") != 1 {
				t.Errorf("the stream is %s", got)
			}
			_ = h.Close(t.Context())
		})
	}
}
