package differential

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// A value is JSON as it is written: names may stand twice, and numbers and texts keep their spelling, so that what passes through a
// gateway can be compared byte for byte.
type value struct {
	// text is the spelling of a scalar; open is the bracket of an object or an array, 0 for a scalar.
	text  string
	open  byte
	names []string // with their quotes
	items []*value
}

func scalar(text string) *value { return &value{text: text} }

// textOf returns a text, spelled as AppendText spells it.
func textOf(s string) *value { return scalar(string(rawjson.AppendText(nil, s))) }

// object returns an object of names and values in turn.
func object(pairs ...any) *value {
	v := &value{open: '{'}
	for i := 0; i < len(pairs); i += 2 {
		v.add(pairs[i].(string), pairs[i+1].(*value))
	}
	return v
}

// add appends a member and returns v.
func (v *value) add(name string, member *value) *value {
	v.names = append(v.names, string(rawjson.AppendText(nil, name)))
	v.items = append(v.items, member)
	return v
}

// String writes the value without spaces.
func (v *value) String() string {
	var b strings.Builder
	v.writeTo(&b, func() {})
	return b.String()
}

// spaced writes the value with spaces between its tokens.
func (v *value) spaced(r *rand.Rand) string {
	var b strings.Builder
	v.writeTo(&b, func() {
		if r.IntN(4) == 0 {
			b.WriteString([]string{" ", "\t", "  "}[r.IntN(3)])
		}
	})
	return b.String()
}

func (v *value) writeTo(b *strings.Builder, space func()) {
	if v.open == 0 {
		b.WriteString(v.text)
		return
	}
	b.WriteByte(v.open)
	for i, item := range v.items {
		if i > 0 {
			b.WriteByte(',')
		}
		space()
		if v.open == '{' {
			b.WriteString(v.names[i])
			space()
			b.WriteByte(':')
			space()
		}
		item.writeTo(b, space)
		space()
	}
	b.WriteByte(v.open + 2) // ']' and '}' stand two behind their brackets
}

// clone copies a value with all that is in it.
func (v *value) clone() *value {
	c := *v
	c.names, c.items = append([]string(nil), v.names...), make([]*value, len(v.items))
	for i, item := range v.items {
		c.items[i] = item.clone()
	}
	return &c
}

// simpler returns values that are a step simpler: without a member, with a part in the place of the whole, with a shorter text.
// The boldest steps come first.
func (v *value) simpler() (all []*value) {
	if v.open == 0 {
		switch {
		case len(v.text) > 8 && v.text[0] == '"':
			if text, ok := rawjson.Text([]byte(v.text)); ok {
				runes := []rune(text)
				all = append(all, scalar(`""`), textOf(string(runes[:len(runes)/2])), textOf(string(runes[len(runes)/2:])))
			}
			if strings.Contains(v.text, `\`) || len(v.text) > 20 {
				all = append(all, scalar(`"a"`))
			}
		case v.text != "0" && v.text != `""` && v.text != `"a"`:
			all = append(all, scalar("0"), scalar(`""`))
		}
		return all
	}
	if len(v.items) > 0 {
		all = append(all, &value{open: v.open})
	}
	for half := len(v.items) / 2; half > 1; half /= 2 {
		all = append(all, v.part(0, half), v.part(half, len(v.items)))
		break
	}
	for i := range v.items {
		c := &value{open: v.open, items: append(append([]*value(nil), v.items[:i]...), v.items[i+1:]...)}
		if v.open == '{' {
			c.names = append(append([]string(nil), v.names[:i]...), v.names[i+1:]...)
		}
		all = append(all, c)
	}
	for i, item := range v.items {
		if item.open != 0 {
			all = append(all, item)
		}
		for _, s := range item.simpler() {
			c := *v
			c.items = append([]*value(nil), v.items...)
			c.items[i] = s
			all = append(all, &c)
		}
		if len(all) > 2000 {
			break
		}
	}
	return all
}

func (v *value) part(from, to int) *value {
	c := &value{open: v.open, items: v.items[from:to]}
	if v.open == '{' {
		c.names = v.names[from:to]
	}
	return c
}

// random generates values. It is a generator with a seed, so that a request can be made again.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random {
	return random{rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
}

// one returns one of several.
func one[T any](r random, choices ...T) T { return choices[r.IntN(len(choices))] }

var oddTexts = []string{
	`""`, `"a"`, `"null"`, `"0"`, `"{\"jsonrpc\":\"2.0\"}"`, `"é"`, `"\u00e9"`, `"日本語"`, `"😀"`, `"\ud83d\ude00"`, `"\ud800"`, `"\udc00x"`,
	`"\u0000"`, `"\u001f\b\f\n\r\t"`, `"\/"`, `"/"`, "\"\u2028\u2029\"", `"\u2028"`, `"</script>&amp;"`, `"\\"`, `"\""`, `"\u0022"`, "\"\ufeff\"",
	`"e\u0301"`, `"data: x\n\nevent: y"`, `"\r\n\r\n"`, `"=?base64?eA==?="`, "\"\u202e\"", `"__proto__"`, `"..%2f"`, "\"\x7f\"",
}

var oddNumbers = []string{
	"0", "-0", "1", "-1", "9007199254740993", "-9007199254740993", "18446744073709551616", "123456789012345678901234567890", "1.0", "1.10", "0.1e1", "1E5",
	"1e-7", "1e400", "-1e400", "5e-324", "0.30000000000000004", "3.14159265358979323846264338327950288",
}

var oddNames = []string{
	"a", "b", "name", "arguments", "_meta", "uri", "cursor", "", "é", "__proto__", "constructor", "jsonrpc", "id", "method", "params", "result", "error",
	"$schema", "x-new", "content", "isError", "structuredContent", "progressToken", "日本", "a b", "A", "task", "inputResponses",
}

func (r random) scalar() *value {
	switch r.IntN(8) {
	case 0:
		return scalar(one(r, "null", "true", "false"))
	case 1, 2:
		return scalar(oddNumbers[r.IntN(len(oddNumbers))])
	case 3:
		return scalar(strconv.FormatInt(r.Int64()>>r.IntN(64), 10))
	case 4, 5:
		return scalar(oddTexts[r.IntN(len(oddTexts))])
	}
	return r.text()
}

// text returns an ordinary text; one of 2,000 is huge.
func (r random) text() *value {
	n := r.IntN(20)
	if r.IntN(2000) == 0 {
		n = 20_000 + r.IntN(400_000)
	}
	var b strings.Builder
	for range n {
		b.WriteRune(one(r, 'a', 'b', 'c', ' ', 'x', '1', 'ü', '日', '"', '\\', '\n'))
	}
	return textOf(b.String())
}

// name returns the name of a member, spelled with escapes at times.
func (r random) name() string {
	if r.IntN(6) == 0 {
		return oddTexts[r.IntN(len(oddTexts))]
	}
	name := oddNames[r.IntN(len(oddNames))]
	if r.IntN(12) == 0 && name != "" && name[0] < 0x80 {
		return `"\u00` + strconv.FormatInt(int64(name[0]), 16) + string(rawjson.AppendText(nil, name[1:]))[1:]
	}
	return string(rawjson.AppendText(nil, name))
}

// value returns any value, at most so deep; one of 3,000 is very deep.
func (r random) value(depth int) *value {
	if r.IntN(3000) == 0 {
		v := r.scalar()
		for range 200 + r.IntN(2000) {
			v = &value{open: '[', items: []*value{v}}
		}
		return v
	}
	if depth == 0 || r.IntN(3) > 0 {
		return r.scalar()
	}
	if r.IntN(2) == 0 {
		v := &value{open: '['}
		for range r.IntN(4) {
			v.items = append(v.items, r.value(depth-1))
		}
		return v
	}
	return r.object(depth - 1)
}

// object returns any object; names may stand twice.
func (r random) object(depth int) *value {
	v := &value{open: '{'}
	for range r.IntN(5) {
		v.names = append(v.names, r.name())
		v.items = append(v.items, r.value(depth))
	}
	return v
}
