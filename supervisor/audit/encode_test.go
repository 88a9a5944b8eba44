package audit

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// asJSON decodes a line, and the line that encoding/json makes of the record.
func asJSON(t *testing.T, r Record) (line, want any) {
	t.Helper()
	r.Seq = 7
	line1 := appendNumbered(nil, appendRecord(nil, &r), r.Seq)
	if json.Unmarshal(line1, &line) != nil {
		t.Fatalf("no JSON: %q", line1)
	}
	r.Version, r.Time = Version, r.Time.UTC()
	for _, text := range []*string{&r.Who, &r.From, &r.PeerProgram, &r.Server, &r.Tool, &r.URI, &r.Prompt, &r.Error, &r.Reason, &r.Detail, &r.Rule, &r.Source} {
		if len(*text) > maxText {
			*text = messages.Line(*text, maxText)
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	return line, want
}

// TestEveryFieldIsEncoded: a field that is added to Record and not to appendRecord fails here.
func TestEveryFieldIsEncoded(t *testing.T) {
	var r Record
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.Date(2026, 11, 21, 22, 29, 47, 120_000_000, time.FixedZone("", 3600))))
		case json.RawMessage:
			f.SetBytes([]byte(`{"a":[1,"é"]}`))
		case []string:
			f.Set(reflect.ValueOf([]string{name, "\"<&>\u2028\x01\xff\\"}))
		case *Lost:
			f.Set(reflect.ValueOf(&Lost{Records: 3, From: 1, To: 3, Kinds: map[Kind]uint64{KindCall: 3}, Why: "no"}))
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString(name + " \"<&>\u2028\t\x01\xff\\é")
			case reflect.Int:
				f.SetInt(int64(i + 1))
			case reflect.Uint64:
				f.SetUint(uint64(i + 1))
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Float64:
				f.SetFloat(1.25)
			default:
				t.Fatalf("%s is of a type that this test does not know", name)
			}
		}
		line, want := asJSON(t, r)
		if !reflect.DeepEqual(line, want) {
			t.Fatalf("with %s:\n%v\nis not\n%v", name, line, want)
		}
	}
}

// TestOddRecords: no content of another program's record makes a line that cannot be read.
func TestOddRecords(t *testing.T) {
	for _, r := range []Record{
		{Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}, {Time: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Millis: math.NaN()}, {Millis: math.Inf(1)}, {Args: json.RawMessage(`{"a":`)}, {Server: strings.Repeat("é\n", 10_000)},
	} {
		r.Kind = KindCall
		got, ok := decodeRecord(appendNumbered(nil, appendRecord(nil, &r), 7))
		if !ok || got.Seq != 7 || len(got.Server) > 4*maxText || got.Cut != (len(r.Args) > 0) || got.Time.Year() > 9999 {
			t.Errorf("%v %+v", ok, got)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("files", "read \"x\"\n", 1.5, int64(1_800_000_000_123_456_789), uint64(7), 3)
	f.Add("\xff\u2028", strings.Repeat("é", 400), 0.001, int64(-1), uint64(math.MaxUint64), -1)
	f.Add("", "\x00\x7f\u0085", 1e300, int64(0), uint64(0), 0)
	f.Fuzz(func(t *testing.T, server, text string, ms float64, nanos int64, epoch uint64, sent int) {
		if math.IsNaN(ms) || math.IsInf(ms, 0) {
			return
		}
		line, want := asJSON(t, Record{Kind: KindCall, Run: text, Server: server, Error: text, Change: text, Millis: ms,
			Time: time.Unix(0, nanos), Epoch: epoch, Sent: sent, Added: []string{server, text}})
		if !reflect.DeepEqual(line, want) {
			t.Errorf("%v is not %v", line, want)
		}
	})
}
