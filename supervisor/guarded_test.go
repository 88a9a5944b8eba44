package supervisor

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A logger that did not return for a while is waited for again when it has: the messages of a call are in the log when the call returns.
func TestALoggerThatHasRecoveredIsWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		lines, pause := 0, time.Duration(0)
		log := guardLogger(zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(writerFunc(func() {
			mu.Lock()
			wait := pause
			mu.Unlock()
			time.Sleep(wait)
			mu.Lock()
			lines++
			mu.Unlock()
		})), zapcore.DebugLevel)))
		took := func() time.Duration {
			began := time.Now()
			log.Info("x")
			return time.Since(began)
		}
		slow := func(d time.Duration) {
			mu.Lock()
			pause = d
			mu.Unlock()
		}
		if d := took(); d != 0 || lines != 1 {
			t.Errorf("the first line: %d written after %v", lines, d)
		}
		slow(time.Minute)
		if d := took(); d != logWait {
			t.Errorf("a logger that does not return is waited for %v", d)
		}
		if d := took(); d != 0 {
			t.Errorf("and a second time for %v", d)
		}
		time.Sleep(2 * time.Minute) // both are written
		slow(logWait / 2)
		if d := took(); d != logWait/2 || lines != 4 {
			t.Errorf("a logger that has recovered is waited for %v, and has %d of 4 lines", d, lines)
		}
	})
}

// writerFunc is called for each line.
type writerFunc func()

func (f writerFunc) Write(line []byte) (int, error) { f(); return len(line), nil }
