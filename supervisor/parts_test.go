package supervisor_test

import (
	"encoding/json"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A person reads what programs read: names of another case are none of the protocol's.
func TestResultsAreReadByExactNames(t *testing.T) {
	r := supervisor.Result{Raw: json.RawMessage(` {"content":[{"type":"text","text":"real","Text":"shown","TYPE":"image"},` +
		`{"type":"resource","resource":{"uri":"a://b","text":"inside","Text":"shown"}},{"type":"text","name":5,"text":"lone \ud800"}],` +
		`"Content":[{"type":"text","text":"shown"}],"structuredContent":1,"StructuredContent":2}`)}
	if got, want := r.Text(), "real\ninside\nlone \ufffd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := string(r.Structured()); got != "1" {
		t.Errorf("structured: %s", got)
	}
	p := supervisor.PromptResult{Raw: json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"real","Text":"shown"},` +
		`"Role":"assistant"}],"Messages":[]}`)}
	if m := p.Messages(); len(m) != 1 || m[0].Role != "user" || m[0].Content.Text != "real" {
		t.Errorf("%+v", m)
	}
	c := supervisor.ResourceResult{Raw: json.RawMessage(`{"contents":[{"uri":"a://b","text":"real","Text":"shown"}],"Contents":[]}`)}
	if got := c.Text(); got != "real" {
		t.Errorf("%q", got)
	}
}

// What cannot be read is an error, and the text is the bytes.
func TestResultsThatCannotBeRead(t *testing.T) {
	for _, raw := range []string{`{"content":{}}`, `{"content":[`, `[]`, ``} {
		r := supervisor.Result{Raw: json.RawMessage(raw)}
		if parts, err := r.Content(); err == nil || r.Text() != raw {
			t.Errorf("%s: %v, %q", raw, parts, r.Text())
		}
	}
	r := supervisor.Result{Raw: json.RawMessage(`{"content":[5,{"type":7,"text":"x"},{"type":"new"}]}`)}
	if parts, err := r.Content(); err != nil || len(parts) != 3 || parts[1].Text != "x" || string(parts[0].Raw) != "5" {
		t.Errorf("%+v, %v", parts, err)
	}
}

// Text reads a single part of text in one walk, and everything else part by part: both ways say the same.
func FuzzTextIsThatOfTheContent(f *testing.F) {
	for _, raw := range []string{
		`{"content":[{"type":"text","text":"a\nb"}]}`, ` {"isError":true,"content":[ {"text":"x","type":"text"} ] } `,
		`{"content":[{"type":"text","text":"a"}],"content":[{"type":"text","text":"b"}]}`,
		`{"content":[{"type":"text","text":"a"}],"content":[]}`, `{"content":[{"type":"text","text":"a"}],"content":null}`,
		`{"content":[{"type":"text","text":"a","text":"b","type":"image"}]}`, `{"content":[{"type":"text"}],"structuredContent":{"a":1}}`,
		`{"content":[{"type":"text","text":5}]}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		`{"content":[{"type":"text","text":"a"}]} x`, `{"content":[{"type":"text","text":"a"}`, `{"content":[],"structuredContent":{"a":1}}`,
		`{"content":[{"\u0074ype":"\u0074ext","text":"\ud800"}]}`,
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r := supervisor.Result{Raw: json.RawMessage(raw)}
		parts, err := r.Content()
		want := raw
		if err == nil {
			if len(parts) != 1 || parts[0].Type != "text" {
				return
			}
			want = parts[0].Text
		}
		if got := r.Text(); got != want {
			t.Errorf("%q: %q, by parts %q (%v)", raw, got, want, err)
		}
	})
}

// TestNoResultHasNoText: a program that prints the text before it looks at the error does not panic.
func TestNoResultHasNoText(t *testing.T) {
	var none *supervisor.Result
	if text := none.Text(); text != "" {
		t.Errorf("%q", text)
	}
}
