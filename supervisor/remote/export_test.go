package remote

import (
	"time"

	"google.golang.org/grpc/keepalive"
)

// WithSilence is a configuration that finds dead connections sooner than others do.
func WithSilence(cfg Config, silence, ends time.Duration) Config {
	cfg.keepaliveParams = keepalive.ClientParameters{Time: silence, Timeout: ends}
	return cfg
}
