package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// byDecoding is the canonical form made the long way: maps put names in order and leave the last of several, and the encoder
// writes each text anew. Two characters it escapes that can do without.
func byDecoding(args []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil || d.InputOffset() != int64(len(bytes.TrimRight(args, " \t\r\n"))) {
		return args
	}
	form, err := marshalValue(value)
	if err != nil {
		return args
	}
	var out []byte
	for len(form) > 0 {
		switch {
		case bytes.HasPrefix(form, []byte(`\u2028`)):
			out, form = append(out, "\u2028"...), form[6:]
		case bytes.HasPrefix(form, []byte(`\u2029`)):
			out, form = append(out, "\u2029"...), form[6:]
		case form[0] == '\\':
			out, form = append(out, form[:2]...), form[2:]
		default:
			out, form = append(out, form[0]), form[1:]
		}
	}
	return out
}

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
	`{"long":"` + strings.Repeat("x", 3*piece) + `","escaped":"` + strings.Repeat(`\n`, 3*piece) + `","a":` + strings.Repeat(" ", 10) + `1}`,
}

func checkHash(t *testing.T, args []byte) {
	t.Helper()
	var c canonicalHasher
	if got, want := c.hash(args), sha256.Sum256(byDecoding(args)); got != want {
		form := []byte("(no JSON)")
		if c.parseText(args) {
			form = []byte("(JSON)")
		}
		t.Errorf("%.200q %s has another hash than\n%.300q", args, form, byDecoding(args))
	}
}

// TestHashIsThatOfDecoding: the form is the one that decoding and encoding gives, also of what is no JSON, and of one text
// after another.
func TestHashIsThatOfDecoding(t *testing.T) {
	var c canonicalHasher
	for _, s := range inputs {
		checkHash(t, []byte(s))
		if c.hash([]byte(s)) != sha256.Sum256(byDecoding([]byte(s))) {
			t.Errorf("%.100q: not after another text", s)
		}
	}
}

// TestHashOfDeepAndWideArguments: as deep as encoding/json goes, and no deeper; and objects of many members that are nested
// take no time that grows with their depth.
func TestHashOfDeepAndWideArguments(t *testing.T) {
	nested := func(open, inside, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + inside + strings.Repeat(end, n))
	}
	for _, args := range [][]byte{
		nested("[", "", "]", maxDepth), nested("[", "", "]", maxDepth+1), nested(`{"b":1,"a":`, "{}", "}", maxDepth-1), nested(`[{"a":`, "1", "}]", maxDepth/2+1),
	} {
		checkHash(t, args)
	}
	var wide bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&wide, `"%d":%d,`, (i*7919)%20_011, i)
	}
	checkHash(t, []byte("{"+strings.TrimSuffix(wide.String(), ",")+"}"))
}

// TestHashKeepsNothing: what was hashed is not held, and a large text's memory is given back.
func TestHashKeepsNothing(t *testing.T) {
	var c canonicalHasher
	c.hash([]byte("[" + strings.Repeat("1,", 2*keptNodes) + "1]"))
	if c.src != nil || cap(c.nodes) > keptNodes || cap(c.out) > 2*piece {
		t.Errorf("it keeps %d bytes of source, %d nodes, %d bytes of form", len(c.src), cap(c.nodes), cap(c.out))
	}
}

func FuzzHash(f *testing.F) {
	for _, s := range inputs {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, args []byte) { checkHash(t, args) })
}
