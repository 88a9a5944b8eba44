package main

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// newLogger returns a logger to standard error, with lines for people on a terminal and JSON otherwise. The packages that log a
// server's words have escaped them.
func (o *options) newLogger() *zap.Logger {
	level := o.logDefault
	if o.logLevel != "" {
		level, _ = zapcore.ParseLevel(o.logLevel) // applyFlags has checked it
	}
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.RFC3339TimeEncoder
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(cfg)
	if isTerminal(o.err) {
		cfg.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		cfg.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(cfg)
	}
	// zapcore.Lock keeps lines whole, because the actors of several servers log concurrently.
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(o.err)), level))
}

// isTerminal reports whether a reader or writer of a run is a terminal, also through the writers of this program.
func isTerminal(s any) bool {
	f, ok := s.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
