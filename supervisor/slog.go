package supervisor

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewSlogLogger returns a logger for Config.Logger whose lines go to a handler of log/slog. Levels map by name: what zap has above
// error (dpanic, panic, fatal) is error. The logger's name, which is that of a part of the manager, is the attribute "logger". Fields
// become attributes of the same names in the order of the fields, objects become groups, and errors their texts.
func NewSlogLogger(h slog.Handler) *zap.Logger { return zap.New(slogCore{h}) }

// slogCore is a core of zap over a handler of slog. It keeps nothing.
type slogCore struct{ handler slog.Handler }

// Enabled implements zapcore.Core.
func (c slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(l))
}

// With implements zapcore.Core.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{c.handler.WithAttrs(attributesOf(fields))}
}

// Check implements zapcore.Core.
func (c slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, e.Caller.PC)
	if e.LoggerName != "" {
		r.AddAttrs(slog.String("logger", e.LoggerName))
	}
	r.AddAttrs(attributesOf(fields)...)
	return c.handler.Handle(context.Background(), r)
}

// Sync implements zapcore.Core: handlers of slog have nothing to flush.
func (slogCore) Sync() error { return nil }

// slogLevel returns the level of slog with the name that is nearest.
func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.InfoLevel:
		return slog.LevelDebug
	case l < zapcore.WarnLevel:
		return slog.LevelInfo
	case l < zapcore.ErrorLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// attributesOf encodes each field by zap's own rules and takes the result as an attribute.
func attributesOf(fields []zapcore.Field) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(fields))
	for i, f := range fields {
		enc := zapcore.NewMapObjectEncoder()
		// A namespace holds all fields that follow it.
		if f.Type == zapcore.NamespaceType {
			return append(attrs, slog.Attr{Key: f.Key, Value: slog.GroupValue(attributesOf(fields[i+1:])...)})
		}
		f.AddTo(enc)
		// Nearly every field has one value; an error may add its verbose form.
		attrs = append(attrs, groupOf(enc.Fields)...)
	}
	return attrs
}

// groupOf returns the values of an object in the order of their names.
func groupOf(object map[string]any) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if inner, ok := object[key].(map[string]any); ok {
			attrs = append(attrs, slog.Attr{Key: key, Value: slog.GroupValue(groupOf(inner)...)})
			continue
		}
		attrs = append(attrs, slog.Any(key, object[key]))
	}
	return attrs
}
