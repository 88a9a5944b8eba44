package supervisor

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
)

// newSystem makes an actor system that logs where we log. Its metrics stay off: with them a Send costs thirteen times as
// much and the program's global OpenTelemetry provider is replaced.
func newSystem(log *zap.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(
		// The library's throttle for dead letters keeps a goroutine for its interval; the shortest one lets it end.
		actor.WithDeadLetterThrottleInterval(time.Nanosecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(zapslog.NewHandler(log.Core(), zapslog.WithName("protoactor")))
		}),
	)
}
