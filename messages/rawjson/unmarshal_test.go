package rawjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

type page struct {
	Text  string          `json:"text"`
	Count int             `json:"count,omitempty"`
	Meta  json.RawMessage `json:"_meta"`
	Next  *string         `json:"next"`
}

func TestUnmarshalTakesExactNames(t *testing.T) {
	var p page
	if err := rawjson.Unmarshal([]byte(` {"Text":"b","text":"a","TEXT":"c","COUNT":4,"_meta":{"x" : 1},"next":null} `), &p); err != nil {
		t.Fatal(err)
	}
	if p.Text != "a" || p.Count != 0 || string(p.Meta) != `{"x" : 1}` || p.Next != nil {
		t.Errorf("%+v", p)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	for src, path := range map[string]string{
		`{"text":"a","text":"b"}`:          "",
		`{"_meta":{"deep":{"x":1,"x":2}}}`: "/_meta/deep",
		`{"other":[{"x":1,"x":2}]}`:        "/other/0",
	} {
		var doubled *rawjson.NameError
		if err := rawjson.Unmarshal([]byte(src), new(page)); !errors.As(err, &doubled) || doubled.Path != path {
			t.Errorf("%s: %v", src, err)
		}
	}
	for _, src := range []string{``, `{`, `{"text":7}`, `{"count":1.5}`, `{"text":"` + "\xff" + `"}`, `{"text":"\ud800"}`, `[]`, `{} {}`} {
		var fault *rawjson.Error
		if err := rawjson.Unmarshal([]byte(src), new(page)); !errors.As(err, &fault) {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// Tokens come through this function, so no error quotes a value.
func TestUnmarshalQuotesNoValue(t *testing.T) {
	for _, src := range []string{`{"count":"S3CRET"}`, `{"text":"S3CRET`, `{"_meta":S3CRET}`, `"S3CRET"`, `{"count":123450000000000000000}`} {
		err := rawjson.Unmarshal([]byte(src), new(page))
		if err == nil || strings.Contains(err.Error(), "S3C") || strings.Contains(err.Error(), "12345") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// FuzzUnmarshal holds it to encoding/json where names are written exactly: what it accepts, the other accepts, alike.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{"text":"a","count":3,"_meta":{},"next":"n"}`, `{"Text":1}`, `null`, `{"text":"\ud83d\ude00"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var mine, other page
		if rawjson.Unmarshal(b, &mine) != nil || rawjson.CheckNames(b) != nil {
			return
		}
		for o := rawjson.ObjectAt(b, rawjson.SkipSpace(b, 0), 0); o.Next(); o.Skip() {
			for _, name := range []string{"text", "count", "_meta", "next"} {
				if string(o.Name) != name && strings.EqualFold(string(o.Name), name) {
					return
				}
			}
		}
		if err := json.Unmarshal(b, &other); err != nil || mine.Text != other.Text || mine.Count != other.Count {
			t.Fatalf("%q: %+v, and encoding/json %+v, %v", b, mine, other, err)
		}
	})
}

func TestUnmarshalStrict(t *testing.T) {
	for src, ok := range map[string]bool{
		`{"text":"a","other":1}`: true, `{"Text":"a"}`: false, `{"text":"a","TEXT":"b"}`: false, `{"text":"a","Text":"a"}`: false,
		`{"text":"a","text":"a"}`: false, `{"Count":0,"text":""}`: true, // no reading of it differs
	} {
		if err := rawjson.UnmarshalStrict([]byte(src), new(page)); ok != (err == nil) {
			t.Errorf("%s: %v", src, err)
		}
	}
}
