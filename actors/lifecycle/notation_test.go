package lifecycle

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The notation of testdata: an event or effect is its type's name, then its fields that are not zero as key=value, or
// the bare key for a true flag. A cause is its class, a time is the distance from the beginning.
//
//	Init enabled lazy ticket=1
//	Scheduled epoch=7 retry=parked at=5m0s
//	Failed epoch=7 cause=network

// beginning is the time 0 of the notation. The machine never reads a clock.
var beginning = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// kinds has one zero value of every event. TestNotationKnowsEveryKind compares it with the sources.
var kinds = []Event{
	Init{}, Enable{}, Disable{}, Reconnect{}, Wake{}, Refresh{}, Respec{}, Remove{}, Announce{},
	Granted{}, Scheduled{}, Dialed{}, Installing{}, Greeted{}, Listed{}, ListFailed{}, Failed{}, Lost{}, Closed{}, Unauthorized{},
	ToolsChanged{}, RelistDue{}, IdleOut{},
}

// effectKinds has one zero value of every effect.
var effectKinds = []Effect{
	Ask{}, Unask{}, Report{}, Answer{}, Install{}, Up{}, Decline{}, Gone{},
	Dial{}, Greet{}, List{}, Coalesce{}, Shut{},
	Show{}, Update{}, Lose{}, Withdraw{}, Rest{},
}

func kindOf(v any) string { return reflect.TypeOf(v).Name() }

// write puts an event or effect into the notation.
func write(v any) string {
	rv := reflect.ValueOf(v)
	words := []string{kindOf(v)}
	for i := range rv.NumField() {
		field, key := rv.Field(i), strings.ToLower(rv.Type().Field(i).Name)
		switch {
		case field.Kind() == reflect.Bool && field.Bool():
			words = append(words, key)
		case field.IsZero() && field.Type() != reflect.TypeFor[Urgency]():
		default:
			words = append(words, key+"="+writeValue(field.Interface()))
		}
	}
	return strings.Join(words, " ")
}

func writeValue(v any) string {
	switch v := v.(type) {
	case Cause:
		return string(v.Class)
	case *Cause:
		return string(v.Class)
	case time.Time:
		return v.Sub(beginning).String()
	}
	return fmt.Sprint(v)
}

// read is the inverse of write, for events.
func read(line string) (Event, error) {
	words := strings.Fields(line)
	for _, kind := range kinds {
		if len(words) == 0 || kindOf(kind) != words[0] {
			continue
		}
		rv := reflect.New(reflect.TypeOf(kind)).Elem()
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			field := rv.FieldByNameFunc(func(name string) bool { return strings.ToLower(name) == key })
			if !field.IsValid() {
				return nil, fmt.Errorf("%s has no field %q", words[0], key)
			}
			if err := readValue(field, value); err != nil {
				return nil, fmt.Errorf("%s: %w", word, err)
			}
		}
		return rv.Interface().(Event), nil
	}
	return nil, fmt.Errorf("%q is no event", line)
}

func readValue(field reflect.Value, value string) error {
	cause := Cause{Class: messages.Class(value), Text: value}
	switch field.Interface().(type) {
	case bool:
		field.SetBool(true)
	case uint64:
		n, err := strconv.ParseUint(value, 10, 64)
		field.SetUint(n)
		return err
	case messages.Retry:
		field.SetString(value)
	case Cause:
		field.Set(reflect.ValueOf(cause))
	case *Cause:
		field.Set(reflect.ValueOf(&cause))
	case time.Time:
		d, err := time.ParseDuration(value)
		field.Set(reflect.ValueOf(beginning.Add(d)))
		return err
	default:
		return fmt.Errorf("the notation has no %s", field.Type())
	}
	return nil
}

// writeState is a state in one line: phase and step, then what there is, then what is on its way.
func writeState(s State) string {
	if s.Phase == "" {
		return "not begun"
	}
	b := new(strings.Builder)
	b.WriteString(string(s.Phase))
	if s.Step != "" {
		fmt.Fprintf(b, " %s", s.Step)
	}
	also := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(b, ", "+format, args...)
		}
	}
	also(s.Removing, "removing")
	also(s.Warm(), "warm")
	also(s.Epoch != 0, "epoch %d", s.Epoch)
	also(s.Conn != None, "%v", s.Conn)
	if s.Cause != nil {
		also(true, "after %s", s.Cause.Class)
	}
	also(s.Retry != "", "retry=%s", s.Retry)
	also(!s.NextAt.IsZero(), "at %s", s.NextAt.Sub(beginning))
	also(s.Step == messages.Closing, "then %v", s.DueUrgency)
	also(s.StartRequested, "asked")
	also(s.Listing, "listing")
	also(s.RelistAfter, "again")
	also(s.Dirty, "dirty")
	also(s.ListFailures > 0, "%d list failures", s.ListFailures)
	also(s.Refreshing, "refreshing")
	also(s.ToolsShown, "shown")
	also(s.Ticket != s.Answered, "ticket %d waits", s.Ticket)
	return b.String()
}

// mustRead is read for the tables of tests.
func mustRead(t testing.TB, line string) Event {
	t.Helper()
	e, err := read(line)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// replay is the state after a history: events in the notation, separated by semicolons.
func replay(t testing.TB, history string) State {
	t.Helper()
	var s State
	for line := range strings.SplitSeq(history, ";") {
		s, _ = Step(s, mustRead(t, line))
		if err := s.Check(); err != nil {
			t.Fatalf("after %s: %v", line, err)
		}
	}
	return s
}
