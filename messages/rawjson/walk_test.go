package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

var seeds = []string{
	`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\n\"b\\"}],"isError":true}}`,
	`{"id":9007199254740993,"error":{"code":-32601,"data":[1e400,-0.5E-3]}}`,
	"\t{ \"id\" : \"7\" ,\r\n\"method\":\"ping\" } ",
	`{"a":"\u00e9\ud800\uD83D\uDE00` + "\xff" + `","b":[true,false,null,[[[{}]]]]}`,
	`{"id":01}`, `{"id":1,}`, `{"id":1`, `{"a":"` + "\x01" + `"}`, `{"x":NaN}`, `{"a":"\x"}`, `{"a" 1}`, `[1,]`, `[,1]`, `{,}`,
	`-`, `-0`, `1.`, `1e`, `1e+5`, `.5`, `tru`, `"\u12g4"`, `"\`, `{"a":1}}`, ``,
}

// FuzzValid holds the walk to encoding/json: both accept the same bytes, and walking says what skipping says.
func FuzzValid(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := rawjson.Valid(b), json.Valid(b); got != want {
			t.Fatalf("valid: %v, encoding/json: %v", got, want)
		}
		i := rawjson.SkipSpace(b, 0)
		if i == len(b) {
			return
		}
		skipped := rawjson.SkipValue(b, i, 0)
		var walked int
		switch b[i] {
		case '{':
			o := rawjson.ObjectAt(b, i, 0)
			for o.Next() {
				o.Skip()
			}
			walked = o.End()
		case '[':
			a := rawjson.ArrayAt(b, i, 0)
			for a.Next() {
				a.Skip()
			}
			walked = a.End()
		default:
			return
		}
		if walked != skipped {
			t.Fatalf("skipping ends at %d, walking at %d", skipped, walked)
		}
	})
}

// FuzzText compares the text of a string with what encoding/json reads, and with what AppendText made of that.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		`""`, `"plain"`, `"a\"b\\c\/d\b\f\n\r\t"`, `"\u0041\u00e9\u20AC\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`,
		`"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, "\"\xff\\n\xc3\"", "\"\u2028 \xe2\x82\"", `"\u0000"`, `"\ufffd"`,
		`"` + strings.Repeat("p", 80) + `\n` + strings.Repeat(`\u00e9`, 200) + `é"`,
		`"` + strings.Repeat("p", 1200) + `\ud83d\ude00` + strings.Repeat("é", 40) + `\""`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || b[0] != '"' || rawjson.SkipText(b, 0) != len(b) {
			return
		}
		var want string
		err := json.Unmarshal(b, &want)
		got, ok := rawjson.Text(b)
		if ok != (err == nil) || got != want {
			t.Fatalf("%q is %q, %v, and encoding/json reads %q, %v", b, got, ok, want, err)
		}
		written := rawjson.AppendText(nil, want)
		if back, _ := rawjson.Text(written); back != want || !json.Valid(written) || string(rawjson.AppendText(nil, []byte(want))) != string(written) {
			t.Fatalf("%q was written as %q", want, written)
		}
	})
}

// TestSpecialByteInALongText puts each byte that means something at every position of a text that is looked at in pieces: the
// verdict, the text that is read and the text that is written are those of encoding/json.
func TestSpecialByteInALongText(t *testing.T) {
	const size = 1<<10 + 200
	for _, special := range []string{"\"", "\\", "\x00", "\x1f", "\n", "\xff", `\n`, `\u00e9`, `\ud83d\ude00`, "é", "\u2028", "\x7f"} {
		for at := range size {
			text := strings.Repeat("p", at) + special + strings.Repeat("q", size-at)
			quoted := []byte(`"` + text + `"`)
			var want string
			err := json.Unmarshal(quoted, &want)
			if valid := rawjson.Valid(quoted); valid != (err == nil) {
				t.Fatalf("%q after %d bytes: valid %v, encoding/json: %v", special, at, valid, err)
			}
			if err == nil {
				if got, ok := rawjson.Text(quoted); !ok || got != want {
					t.Fatalf("%q after %d bytes is read as %q", special, at, got[max(0, at-10):])
				}
			}
			var back string
			written := rawjson.AppendText(nil, text)
			if err := json.Unmarshal(written, &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") {
				t.Fatalf("%q after %d bytes is written as %q, %v", special, at, written[max(0, at-10):], err)
			}
		}
	}
}

func TestDepth(t *testing.T) {
	for _, n := range []int{1, rawjson.MaxDepth, rawjson.MaxDepth + 1} {
		for _, brackets := range []string{"[]", "{}"} {
			open, middle := brackets[:1], ""
			if open == "{" {
				open, middle = `{"a":`, "1"
			}
			b := []byte(strings.Repeat(open, n) + middle + strings.Repeat(brackets[1:], n))
			if got, want := rawjson.Valid(b), json.Valid(b); got != want || want != (n <= rawjson.MaxDepth) {
				t.Errorf("%d × %s: accepted %v, encoding/json %v", n, brackets, got, want)
			}
		}
	}
}

func TestMember(t *testing.T) {
	raw := []byte(`{"Type":1,"type": 2,"\u0074ype" :3,"deep":{"type":4}}`)
	if got := rawjson.Member(raw, "type"); string(got) != "3" {
		t.Errorf("type is %s", got)
	}
	if rawjson.Member(raw, "none") != nil || rawjson.Member([]byte(`["type"]`), "type") != nil {
		t.Error("a member that is not there was found")
	}
}

func TestAppendTextEscapes(t *testing.T) {
	got := string(rawjson.AppendText([]byte("x"), "a\"\\\b\f\n\r\t\x1f\u2028\u2029\xffé😀</"))
	if want := `x"a\"\\\b\f\n\r\t\u001f\u2028\u2029` + "\ufffd" + `é😀</"`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func BenchmarkValid(b *testing.B) {
	src := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 100) + `"}],"structuredContent":{"rows":[1,2,3]}}`)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if !rawjson.Valid(src) {
			b.Fatal()
		}
	}
}
