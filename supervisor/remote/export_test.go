package remote

import (
	"time"

	"google.golang.org/grpc/keepalive"
)

// WithSilence returns a configuration that notices dead connections earlier than the default does.
func WithSilence(cfg Config, silence, ends time.Duration) Config {
	cfg.keepaliveParams = keepalive.ClientParameters{Time: silence, Timeout: ends}
	return cfg
}
