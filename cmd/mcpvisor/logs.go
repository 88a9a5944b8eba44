package main

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// newLogger writes to standard error: lines for people on a terminal, JSON otherwise. What servers say has been
// neutralised by whoever logs it.
func (o *options) newLogger() *zap.Logger {
	level := o.logDefault
	if o.logLevel != "" {
		level, _ = zapcore.ParseLevel(o.logLevel) // settle has checked it
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
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(o.err)), level))
}

// isTerminal reports whether a person is at the other end of a reader or a writer.
func isTerminal(s any) bool {
	f, ok := s.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
