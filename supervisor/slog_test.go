package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestSlogLoggerKeepsWhatZapSays: levels, names, fields of every kind, fields of before, namespaces, and what is not enabled.
func TestSlogLoggerKeepsWhatZapSays(t *testing.T) {
	var out bytes.Buffer
	h := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	log := supervisor.NewSlogLogger(h).Named("core").With(zap.String("server", "a b"))
	log.Debug("not enabled")
	log.Info("in", zap.Int("n", 3), zap.Duration("after", 1500*time.Millisecond), zap.Error(errors.New("no")), zap.Bool("ok", true))
	log.Warn("inside", zap.Int("before", 1), zap.Namespace("inner"), zap.Strings("list", []string{"x", "y"}))
	log.Error("object", zap.Object("o", zapcore.ObjectMarshalerFunc(func(e zapcore.ObjectEncoder) error {
		e.AddString("k", "v")
		return nil
	})))
	log.DPanic("above error")
	want := `level=INFO msg=in server="a b" logger=core n=3 after=1.5s error=no ok=true
level=WARN msg=inside server="a b" logger=core before=1 inner.list="[x y]"
level=ERROR msg=object server="a b" logger=core o.k=v
level=ERROR msg="above error" server="a b" logger=core
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestTheManagerLogsToSlog: what a server's failure logs reaches the handler.
func TestTheManagerLogsToSlog(t *testing.T) {
	var out bytes.Buffer
	f := newFake("x")
	f.refuse = errors.New("down today")
	m := start(t, supervisor.Config{Logger: supervisor.NewSlogLogger(slog.NewJSONHandler(&out, nil))}, map[string]*fake{"a": f})
	settled(t, m)
	closeAll(t, m)
	if !strings.Contains(out.String(), "down today") {
		t.Errorf("logged: %s", out.String())
	}
}

// A program that logs with log/slog gives the manager a logger over its handler.
func ExampleNewSlogLogger() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	m, err := supervisor.Start(ctx, supervisor.Config{Logger: supervisor.NewSlogLogger(h), InProcess: inProcess(),
		Servers: map[string]supervisor.Spec{"greeter": {Type: messages.SDK}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Ready(ctx, "greeter"), m.Close(ctx))
	// Output: <nil> <nil>
}
