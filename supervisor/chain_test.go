package supervisor

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
)

// TestTheChainHasTheOrderOfItsList: links run in the order of the list and back, whatever their form. The error of one ends the
// request: what follows is not called, what came before sees the error, and may replace it. After a panic every After is called.
func TestTheChainHasTheOrderOfItsList(t *testing.T) {
	refusal, replaced := errors.New("refused"), errors.New("replaced")
	for _, c := range []struct {
		name   string
		fails  string // the link, or last, that returns refusal
		panics bool   // last does
		want   []string
	}{
		{"all is well", "", false, []string{"a", "b", "c", "d", "e", "last", "e-", "d-", "c-", "b-", "a-"}},
		{"a pair refuses", "b", false, []string{"a", "b", "a-refused"}},
		{"an around refuses", "c", false, []string{"a", "b", "c", "b-refused", "a-refused"}},
		{"a pair behind it refuses", "e", false, []string{"a", "b", "c", "d", "e", "d-refused", "c-", "b-refused", "a-refused"}},
		{"the request fails", "last", false, []string{"a", "b", "c", "d", "e", "last", "e-refused", "d-refused", "c-", "b-refused", "a-refused"}},
		{"a panic", "", true, []string{"a", "b", "c", "d", "e", "last", "e-panic", "d-panic", "b-panic", "a-panic"}},
	} {
		var seen []string
		pair := func(name string) chainLink {
			return chainLink{name: name, before: func(context.Context, *actors.Request) error {
				seen = append(seen, name)
				if c.fails == name {
					return refusal
				}
				return nil
			}, after: func(_ context.Context, _ *actors.Request, err error) error {
				text := ""
				if err != nil {
					text = "refused"
				}
				if messages.ClassOf(err) == messages.ClassPanic {
					text = "panic"
				}
				if seen = append(seen, name+"-"+text); name == "a" && err != nil {
					return replaced
				}
				return err
			}}
		}
		around := chainLink{name: "c", around: func(next actors.Handler) actors.Handler {
			return func(ctx context.Context, r *actors.Request) error {
				if seen = append(seen, "c"); c.fails == "c" {
					return refusal
				}
				err := next(ctx, r)
				seen = append(seen, "c-")
				return err
			}
		}}
		handle := compose([]chainLink{pair("a"), pair("b"), around, pair("d"), pair("e")}, func(context.Context, *actors.Request) error {
			if seen = append(seen, "last"); c.panics {
				panic("last")
			}
			if c.fails == "last" {
				return refusal
			}
			return nil
		})
		var err error
		func() {
			defer func() {
				if r := recover(); (r != nil) != c.panics {
					t.Errorf("%s: recovered %v", c.name, r)
				}
			}()
			err = handle(t.Context(), &actors.Request{})
		}()
		if !slices.Equal(seen, c.want) {
			t.Errorf("%s:\n%v, want\n%v", c.name, seen, c.want)
		}
		if !c.panics && (err == replaced) != (c.fails != "") {
			t.Errorf("%s: the caller gets %v", c.name, err)
		}
	}
}
