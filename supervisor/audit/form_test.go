package audit

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

var update = flag.Bool("update", false, "write the golden files")

// fullRecord returns a record with every member, numbered in their order.
func fullRecord() (r Record) {
	at := time.Date(2026, 11, 23, 15, 0, 0, 120_000_000, time.UTC)
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(at))
		case []string:
			f.Set(reflect.ValueOf([]string{v.Type().Field(i).Name}))
		case *Lost:
			f.Set(reflect.ValueOf(&Lost{Records: 3, From: 1, To: 3, Since: at, Until: at, Kinds: map[Kind]uint64{KindCall: 3}, Why: "full"}))
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString(v.Type().Field(i).Name)
			case reflect.Int:
				f.SetInt(int64(i + 1))
			case reflect.Uint64:
				f.SetUint(uint64(i + 1))
			case reflect.Float64:
				f.SetFloat(float64(i) + 0.5)
			case reflect.Bool:
				f.SetBool(true)
			default:
				// Its own value is set below.
			}
		}
	}
	r.Version, r.Args, r.Line = Version, []byte(`{"a":1}`), nil
	return r
}

// TestTheFormOfARecord holds a line of version 2. Members may be added to a line, because no program writes one that it has read: write
// the golden file anew then. A member that is missing now, or whose value is another one, needs a new Version.
func TestTheFormOfARecord(t *testing.T) {
	golden := filepath.Join("testdata", "record2.jsonl")
	r := fullRecord()
	line := appendNumbered(nil, appendRecord(nil, &r), r.Seq)
	if *update {
		if err := os.WriteFile(golden, line, 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(line, want) {
		t.Errorf("the form has changed:\n%s\nwant\n%s", line, want)
	}
	var known Record
	if err := rawjson.UnmarshalKnown(want, &known); err != nil || known.Server != "Server" || known.Lost.Why != "full" {
		t.Errorf("%+v, %v", known, err)
	}
}

// TestNewerRecords: a record of a newer program is read as far as its members are known, says that it is one, keeps its line, and
// vouches for no arguments.
func TestNewerRecords(t *testing.T) {
	const line = `{"v":3,"kind":"call","tool":"add","argsSha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","mass":5}`
	r, ok := decodeRecord([]byte(line))
	if !ok || !r.IsNewer() || r.Tool != "add" || string(r.Line) != line || r.HasArguments([]byte("{}")) {
		t.Errorf("%+v, %v", r, ok)
	}
	r.Version = Version
	if r.IsNewer() || !r.HasArguments([]byte("{}")) {
		t.Errorf("%+v", r)
	}
}
