package rawjson_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// The example of RFC 8785, sections 3.2.2 to 3.2.4.
func TestCanonicalOfTheRFC(t *testing.T) {
	const src = `{
  "numbers": [333333333.33333329, 1E30, 4.50,
              2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`
	const want = `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
		`"string":"€$\u000f\nA'B\"\\\\\"/"}`
	got, err := rawjson.Canonical([]byte(src))
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	// Section 3.2.4 gives the bytes of the text.
	if !strings.Contains(string(got), "\xe2\x82\xac\x24\x5c\x75\x30\x30\x30\x66\x5c\x6e\x41\x27\x42\x5c\x22\x5c\x5c\x5c\x5c\x5c\x22\x2f\x22") {
		t.Errorf("% x", got)
	}
}

// The example of RFC 8785, section 3.2.3: names by their UTF-16 code units.
func TestCanonicalOrder(t *testing.T) {
	const src = `{
     "\u20ac": "Euro Sign",
     "\r": "Carriage Return",
     "\ufb33": "Hebrew Letter Dalet With Dagesh",
     "1": "One",
     "\ud83d\ude00": "Emoji: Grinning Face",
     "\u0080": "Control",
     "\u00f6": "Latin Small Letter O With Diaeresis"
   }`
	form, err := rawjson.Canonical([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for o := rawjson.ObjectAt(form, 0, 0); o.Next(); {
		text, _ := rawjson.Text(o.Skip())
		values = append(values, text)
	}
	want := []string{
		"Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign", "Emoji: Grinning Face",
		"Hebrew Letter Dalet With Dagesh",
	}
	if !reflect.DeepEqual(values, want) {
		t.Errorf("%q", values)
	}
}

// RFC 8785, appendix B: numbers as IEEE 754 doubles, and their texts.
func TestCanonicalNumbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		src := strconv.FormatFloat(math.Float64frombits(bits), 'e', 20, 64)
		got, err := rawjson.Canonical([]byte(src))
		if err != nil || string(got) != want {
			t.Errorf("%016x: %s is %s, %v; want %s", bits, src, got, err, want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for src, path := range map[string]string{
		`{"a":1,"a":1}`:                     "",
		`{"a":1,"\u0061":1}`:                "",
		`{"x":[{"b":{}},{"b":1,"b":null}]}`: "/x/1",
	} {
		var doubled *rawjson.NameError
		if _, err := rawjson.Canonical([]byte(src)); !errors.As(err, &doubled) || doubled.Path != path {
			t.Errorf("%s: %v", src, err)
		}
	}
	for _, src := range []string{
		``, `{`, `{} {}`, `"` + "\xff" + `"`, `"\ud800"`, `"\ude00\ud83d"`, `1e309`, `[-1e999]`, `{"a":01}`, `NaN`,
		strings.Repeat("[", rawjson.MaxDepth+1) + strings.Repeat("]", rawjson.MaxDepth+1),
	} {
		var fault *rawjson.Error
		if form, err := rawjson.Canonical([]byte(src)); !errors.As(err, &fault) {
			t.Errorf("%.40s: %.40s, %v", src, form, err)
		}
	}
	src := strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth)
	if form, err := rawjson.Canonical([]byte(src)); err != nil || string(form) != src {
		t.Errorf("%d deep: %v", rawjson.MaxDepth, err)
	}
}

func TestCanonicalKeepsTheCallersBytes(t *testing.T) {
	src := []byte(` {"b":1, "a":2} `)
	form, err := rawjson.Canonical(src)
	if err != nil || string(src) != ` {"b":1, "a":2} ` || string(form) != `{"a":2,"b":1}` {
		t.Errorf("%s %s %v", src, form, err)
	}
}

// FuzzCanonical holds the form to what encoding/json reads: the same value, and the form of the form is the form.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`{"b":[1.0,2e3,-0],"a":{"\u00e9":null,"z":"\u2028\/"}}`, `[1e400]`, `{"a":1,"A":2}`, `"\ud83d\ude00"`, ` 5 `, `{"":{"":[]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		form, err := rawjson.Canonical(src)
		if err != nil {
			return
		}
		var before, after any
		if json.Unmarshal(src, &before) != nil || json.Unmarshal(form, &after) != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", src, form)
		}
		if second, err := rawjson.Canonical(form); err != nil || string(second) != string(form) {
			t.Fatalf("%q, then %q, %v", form, second, err)
		}
	})
}
