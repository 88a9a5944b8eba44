package fault

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads a rule from one line:
//
//	FAULT [key=value …]
//
// Keys are the fault's own parameters and on, tool, server, direction, chance, nth, times, at, for, every and name,
// as the fields of [Rule]. If a fault has a parameter of the same name (cut-stream every=60s), the key means the
// parameter. A value with blanks stands between quotes: text="no luck". An error is a *RuleError with the place. The
// rule is checked for no location: [Control.Add] does that.
func Parse(text string) (Rule, error) {
	words, err := splitWords(text)
	if err != nil {
		return Rule{}, err
	}
	if len(words) == 0 {
		return Rule{}, &RuleError{Text: "there is no fault", Fix: "write for example: latency by=2s on=tools/call", At: 1}
	}
	r := Rule{Fault: words[0].text}
	// The first word decides which keys the others may have.
	k, ok := Lookup(r.Fault)
	if !ok {
		err := unknownFault(r.Fault, 0)
		err.At = words[0].at
		return Rule{}, err
	}
	// A key that is given twice is refused, because either value could be the one that was meant.
	seenKeys := map[string]bool{}
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w.text, "=")
		if !ok {
			return Rule{}, &RuleError{Text: fmt.Sprintf("%q is no key=value", w.text), Fix: suggestFix(w.text, k.knownKeys()), At: w.at}
		}
		if seenKeys[key] {
			return Rule{}, &RuleError{Text: fmt.Sprintf("%s is given twice", key), At: w.at}
		}
		seenKeys[key] = true
		if err := r.setKey(k, key, value); err != nil {
			err.At = w.at
			return Rule{}, err
		}
	}
	// The keys were read one by one; this finds values that do not go together.
	if _, err := compileRule(r, 0); err != nil {
		if e, ok := err.(*RuleError); ok { //nolint:errorlint // compile gives no other
			e.At = words[0].at
		}
		return Rule{}, err
	}
	return r, nil
}

// setKey sets one key of a rule: a parameter of the fault, or a field that every rule has.
func (r *Rule) setKey(k Kind, key, value string) *RuleError {
	// The fault's own parameters come first: see cut-stream, whose "every" is not that of the rule.
	if p, ok := findParam(k.ParamsAt(0), key); ok {
		if err := (Values{}).readParam(p, 0, value); err != nil { // only checked here; compileRule reads it again for use
			return err
		}
		if r.With == nil {
			r.With = map[string]string{}
		}
		r.With[key] = value
		return nil
	}
	// Then the keys that every rule has.
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
	if i < 0 {
		return k.unknownParam(0, key, k.knownKeys())
	}
	if err := fields[i].set(r, value); err != nil {
		return &RuleError{Text: fmt.Sprintf("%s=%s: %v", key, value, err)}
	}
	return nil
}

// A field is a key that every rule has, with its text form. get returns "" for the zero value.
type field struct {
	name string
	get  func(*Rule) string
	set  func(*Rule, string) error
}

// fields are in the order in which Rule.String writes them.
var fields = []field{
	textField("on", func(r *Rule) *string { return &r.On }),
	textField("tool", func(r *Rule) *string { return &r.Tool }),
	textField("server", func(r *Rule) *string { return &r.Server }),
	// The direction has two words, and no word for both: leaving the key out means that.
	{"direction", func(r *Rule) string { return string(r.Direction) }, func(r *Rule, s string) error {
		r.Direction = Direction(s)
		if r.Direction != ToServer && r.Direction != ToClient {
			return fmt.Errorf("write server or client")
		}
		return nil
	}},
	{"chance", func(r *Rule) string {
		if r.Chance == 0 {
			return ""
		}
		return strconv.FormatFloat(r.Chance, 'g', -1, 64)
	}, func(r *Rule, s string) error {
		// A chance may be written in percent.
		v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		if strings.HasSuffix(s, "%") {
			v /= 100
		}
		// 0 is refused here, because it means 1 in a Rule: "chance=0" would hit always.
		if err != nil || !(v > 0 && v <= 1) {
			return fmt.Errorf("write a number above 0, at most 1, such as 0.3")
		}
		r.Chance = v
		return nil
	}},
	numberField("nth", func(r *Rule) *int { return &r.Nth }),
	numberField("times", func(r *Rule) *int { return &r.Times }),
	timeField("at", func(r *Rule) *Duration { return &r.At }),
	timeField("for", func(r *Rule) *Duration { return &r.For }),
	timeField("every", func(r *Rule) *Duration { return &r.Every }),
	textField("name", func(r *Rule) *string { return &r.Name }),
}

// textField returns the field for a text; at returns its place in a rule.
func textField(name string, at func(*Rule) *string) field {
	return field{name, func(r *Rule) string { return *at(r) }, func(r *Rule, s string) error {
		// The empty value is that of an absent key, so it cannot be written.
		if s == "" {
			return fmt.Errorf("it is empty")
		}
		*at(r) = s
		return nil
	}}
}

// numberField returns the field for a whole number from 1 on; 0 is the absent value.
func numberField(name string, at func(*Rule) *int) field {
	return field{name, func(r *Rule) string {
		if *at(r) == 0 {
			return ""
		}
		return strconv.Itoa(*at(r))
	}, func(r *Rule, s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			return fmt.Errorf("write a whole number from 1 on")
		}
		*at(r) = v
		return nil
	}}
}

// timeField returns the field for a duration; 0 is the absent value.
func timeField(name string, at func(*Rule) *Duration) field {
	return field{name, func(r *Rule) string {
		if *at(r) == 0 {
			return ""
		}
		return time.Duration(*at(r)).String()
	}, func(r *Rule, s string) error { return at(r).UnmarshalText([]byte(s)) }}
}

// A word is one word of a rule's text, and the character at which it begins, from 1.
type word struct {
	text string
	at   int
}

// splitWords splits a line at its blanks. Quotes keep blanks together and are not part of the word. A quote that is
// not closed is an error.
func splitWords(text string) (words []word, err error) {
	var b strings.Builder
	// opened is the character of the open quote, for the error; an empty pair of quotes is a word.
	inWord, quote, from, opened := false, rune(0), 0, 0
	n := 0
	// Runes are counted, and not bytes, so that the place in an error is a character.
	for _, c := range text {
		n++
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(c)
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inWord {
				words = append(words, word{b.String(), from})
				b.Reset()
				inWord = false
			}
		default:
			// A quote can begin in the middle of a word: text="no luck" is one word.
			if !inWord {
				inWord, from = true, n
			}
			if c == '"' || c == '\'' {
				quote, opened = c, n
				continue
			}
			b.WriteRune(c)
		}
	}
	if quote != 0 {
		return nil, &RuleError{Text: fmt.Sprintf("the quote %c is not closed", quote), At: opened}
	}
	if inWord {
		words = append(words, word{b.String(), from})
	}
	return words, nil
}

// knownKeys returns all keys that a rule of this fault may have, for suggestions.
func (k Kind) knownKeys() []string {
	keys := paramNames(k.ParamsAt(0))
	for _, f := range fields {
		// A parameter that hides a common key stands once.
		if !slices.Contains(keys, f.name) {
			keys = append(keys, f.name)
		}
	}
	return keys
}

// keysOf returns the keys of m.
func keysOf(m map[string]string) iter.Seq[string] { return maps.Keys(m) }
