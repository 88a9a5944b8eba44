package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// inputs are JSON, near misses of it, and what is hard to put in order.
var inputs = []string{
	`{}`, `[]`, `null`, `true`, `false`, `""`, `0`, `-0`, `-1.50e+07`, `1e999`, ` { } `, "\t[ ]\r\n", ` 1 `,
	`{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"b":{"d":1,"c":[{"z":1,"y":2},3]},"a":[[],{}]}`, `{"a":{"x":1},"a":{"y":2}}`,
	`{"\u0062":1,"a":2,"b":3}`, `{"\ud83d\ude00":1,"😀":2,"\ud83d":3,"\ude00":4,"�":5}`, `{"é":1,"e\u0301":2,"z":3,"Z":4,"":5}`,
	`"\u2028 \u2029 \\u2028 \/ \b\f\n\r\t\u0000\u001f\u007f\u0080\"\\"`, "\"\u2028\"", "\"\xff\xc3(\"", `"\ud800\u0041"`, `"\uD83D\uDE00"`,
	"{\"\xff\":1,\"\xfe\":2}", `{"a\u0000":1,"a":2,"a ":3}`, `{"aa":1,"a":2,"\u0061a":3,"ab":4}`,
	`{"a":1}{"b":2}`, `{"a":1},`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `[1 2]`, `{"a":1 "b":2}`, `{1:2}`, `{'a':1}`,
	`01`, `1.`, `.5`, `-`, `+1`, `1e`, `1e+`, `--1`, `0x1`, `1_000`, `NaN`, `tru`, `truex`, `nulls`, `"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"",
	`{"a":1`, `[`, `]`, `}`, `{`, ``, ` `, "\ufeff{}", "\u00a0{}", `{"a":1}` + "\x00", "[1\v]",
	strings.Repeat("[", 100) + strings.Repeat("]", 100),
	`{"long":"` + strings.Repeat("x", 12<<10) + `","escaped":"` + strings.Repeat(`\n`, 12<<10) + `","a":` + strings.Repeat(" ", 10) + `1}`,
}

// TestHashIsOfTheFormOfRFC8785: the hash is that of the form by RFC 8785, also of one text after another, and that of the text
// itself where there is no such form.
func TestHashIsOfTheFormOfRFC8785(t *testing.T) {
	for _, s := range inputs {
		checkHash(t, []byte(s))
	}
}

func checkHash(t *testing.T, args []byte) {
	t.Helper()
	form, err := rawjson.Canonical(args)
	switch {
	case len(bytes.TrimSpace(args)) == 0:
		form = []byte("{}")
	case err != nil:
		form = args
	}
	if got, want := hashOf(args), hex.EncodeToString(sum(form)); got != want {
		t.Errorf("%.200q has another hash than\n%.300q", args, form)
	}
}

func sum(b []byte) []byte { s := sha256.Sum256(b); return s[:] }

// TestRecordsOfVersion1CanBeChecked: testdata/version1.txt has the hashes that the last program of that version computed of the
// inputs.
func TestRecordsOfVersion1CanBeChecked(t *testing.T) {
	text, err := os.ReadFile("testdata/version1.txt")
	if err != nil {
		t.Fatal(err)
	}
	hashes := strings.Fields(string(text))
	if len(hashes) != len(inputs) {
		t.Fatalf("%d hashes of %d inputs", len(hashes), len(inputs))
	}
	for i, s := range inputs {
		// Without arguments, an empty object was hashed before the hash was asked for.
		if strings.TrimSpace(s) == "" {
			continue
		}
		if r := (Record{Version: 1, ArgsSHA256: hashes[i]}); !r.HasArguments([]byte(s)) {
			t.Errorf("%.100q has another hash", s)
		}
	}
}

func TestHasArguments(t *testing.T) {
	hash := func(form string) string { return hex.EncodeToString(sum([]byte(form))) }
	for _, c := range []struct {
		version int
		form    string
		args    string
		want    bool
	}{
		{1, `{"n":1.0}`, `{"n": 1.0}`, true}, {1, `{"n":1.0}`, `{"n": 1}`, false},
		{2, `{"n":1}`, `{"n": 1.0}`, true}, {2, `{"n":1.0}`, `{"n": 1.0}`, false},
		// By code points U+FB33 comes first, by UTF-16 the character beyond U+FFFF.
		{1, `{"\ufb33":2,"😀":1}`, `{"😀":1,"\ufb33":2}`, true}, {2, `{"😀":1,"\ufb33":2}`, `{"\ufb33":2,"😀":1}`, true},
		{1, `{"a":2}`, `{"a":1,"a":2}`, true}, {2, `{"a":1,"a":2}`, `{"a":1,"a":2}`, true}, {2, `{"a":2}`, `{"a":1,"a":2}`, false},
		{1, `{}`, ``, true}, {2, `{}`, ` `, true}, {3, `{}`, `{}`, false},
	} {
		form := strings.ReplaceAll(c.form, `\ufb33`, "\ufb33") // the form has the character itself
		if r := (Record{Version: c.version, ArgsSHA256: hash(form)}); r.HasArguments([]byte(c.args)) != c.want {
			t.Errorf("version %d, %s: %s: not %v", c.version, c.form, c.args, c.want)
		}
	}
	if (&Record{Version: 2}).HasArguments([]byte(`{}`)) {
		t.Error("a record without a hash has arguments")
	}
}

// TestHashOfDeepAndWideArguments: as deep as rawjson goes, and no deeper; and objects of many members that are nested take no
// time that grows with their depth.
func TestHashOfDeepAndWideArguments(t *testing.T) {
	nested := func(open, inside, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + inside + strings.Repeat(end, n))
	}
	const most = rawjson.MaxDepth
	for _, args := range [][]byte{
		nested("[", "", "]", most), nested("[", "", "]", most+1), nested(`{"b":1,"a":`, "{}", "}", most-1), nested(`[{"a":`, "1", "}]", most/2+1),
	} {
		checkHash(t, args)
	}
	var wide, reversed []string
	for i := range 20_000 {
		wide = append(wide, fmt.Sprintf(`"%d":%d`, (i*7919)%20_011, i))
	}
	for _, member := range slices.Backward(wide) {
		reversed = append(reversed, member)
	}
	checkHash(t, []byte("{"+strings.Join(wide, ",")+"}"))
	if hashOf([]byte("{"+strings.Join(wide, ",")+"}")) != hashOf([]byte("{"+strings.Join(reversed, ",")+"}")) {
		t.Error("the order of members changes the hash")
	}
}

// TestHashKeepsNothing: a large text's memory is given back.
func TestHashKeepsNothing(t *testing.T) {
	p := &recordBuffer{form: make([]byte, 0, 2*keptLine), line: make([]byte, 0, 2*keptLine)}
	p.release()
	if p.form != nil || p.line != nil {
		t.Errorf("it keeps %d bytes of form, %d of line", cap(p.form), cap(p.line))
	}
}

func FuzzHash(f *testing.F) {
	for _, s := range inputs {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		checkHash(t, args)
		(&Record{Version: 1}).HasArguments(args)
	})
}
