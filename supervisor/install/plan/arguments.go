package plan

import (
	"strings"
)

// resolveArguments returns the words of a command line. A flag and its value are two words, as nearly every program
// takes them. They are one word, --flag=value, if the flag's name ends in "=" or the value is a truth value, which
// programs do not take as a word of its own.
func (f *resolver) resolveArguments(list []Argument) ([]mixedText, error) {
	var out []mixedText
	for i := range list {
		w, err := f.resolveArgument(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	return out, nil
}

// resolveArgument returns the words of one argument: none if it is optional and has no value, several if it is
// repeated.
func (f *resolver) resolveArgument(a *Argument) ([]mixedText, error) {
	name := a.Name
	switch a.Type {
	case "named":
		// A name is needed for the question to the person, and for --arg.
		if name == "" {
			return nil, planError(ErrUnusable, "a named argument of the package has no name", "")
		}
		// No question is asked about a flag without a value.
		if a.isBareFlag() {
			w := publishedText(name)
			return []mixedText{w}, w.checkSafe("the argument " + shortText(name))
		}
	case "positional":
		if name == "" {
			name = a.ValueHint
		}
		if name == "" {
			name = "value"
		}
	default:
		return nil, planError(ErrUnusable, "an argument of the package is of the type "+shortText(a.Type)+
			", which is neither named nor positional", "")
	}
	in := newInput(ArgumentInput, name, a.Field)
	in.Repeated = a.IsRepeated
	values, err := f.resolveField(in, a.Field, a.Variables)
	if err != nil {
		return nil, err
	}
	var out []mixedText
	for _, v := range values {
		// A URL template of the same package may name the argument by its flag or its hint.
		f.values[name] = v
		if a.ValueHint != "" {
			f.values[a.ValueHint] = v
		}
		switch {
		case a.Type == "positional":
			out = append(out, v)
		// The publisher has written the separator into the name.
		case strings.HasSuffix(name, "="):
			out = append(out, append(publishedText(name), v...))
		case a.Format == "boolean":
			out = append(out, append(publishedText(name+"="), v...))
		default:
			out = append(out, publishedText(name), v)
		}
	}
	// A "${" may only arise when the pieces are joined, so that the joined words are checked.
	for _, w := range out {
		if err := w.checkSafe("the argument " + shortText(name)); err != nil {
			return nil, err
		}
	}
	// Command lines are visible to every user of most systems.
	if a.IsSecret && len(out) > 0 {
		f.addNote("the secret " + shortText(name) + " is an argument of the command, which other programs of this machine can see")
	}
	return out, nil
}

// isBareFlag reports whether a named argument is a flag without a value: its value is there and empty, or no other key
// suggests a value. A description alone suggests one: "--port, the port to listen on" wants a value.
func (a *Argument) isBareFlag() bool {
	if a.Value != nil {
		return *a.Value == "" && !a.IsRequired && a.Default == nil
	}
	return a.Default == nil && a.ValueHint == "" && a.Description == "" && a.Format == "" && a.Placeholder == "" &&
		len(a.Choices) == 0 && !a.IsSecret && !a.IsRequired
}

// resolveEnv returns the variables with which the server is started: those of the document, and all that the person
// gave with --env.
func (f *resolver) resolveEnv(list []KeyValue) (map[string]mixedText, error) {
	out := map[string]mixedText{}
	for i := range list {
		kv := &list[i]
		if !envName(kv.Name) {
			return nil, planError(ErrUnusable, "the package declares the environment variable "+shortText(kv.Name)+
				", which is no name of one", "")
		}
		values, err := f.resolveField(newInput(Environment, kv.Name, kv.Field), kv.Field, kv.Variables)
		if err != nil {
			return nil, err
		}
		// An optional variable without a value is not set at all, which many programs tell from an empty one.
		if len(values) > 0 {
			out[kv.Name], f.values[kv.Name] = values[0], values[0]
		}
	}
	// The person may also set variables that the document does not declare.
	for name, v := range f.source.Env {
		if !envName(name) {
			return nil, planError(ErrValue, shortText(name)+" is no name of an environment variable", "")
		}
		// The document does not say whether the value is a secret, so that it counts as one.
		out[name] = mixedText{{text: v, fromPerson: true, secret: true}}
		f.secrets = append(f.secrets, v)
	}
	return out, nil
}

// envName reports whether s can be the name of a variable and stands in an entry without being expanded.
func envName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= 0x20 || r >= 0x7f || r == '=' || r == '$' || r == '{' || r == '}'
	})
}

// resolveHeaders returns the headers of requests: those of the document, and all that the person gave with --header.
// Names are compared without case, as RFC 9110 requires.
func (f *resolver) resolveHeaders(list []KeyValue) (map[string]string, error) {
	out := map[string]string{}
	for i := range list {
		kv := &list[i]
		if !headerName(kv.Name) {
			return nil, planError(ErrUnusable, "the header "+shortText(kv.Name)+" has a name that no header can have", "")
		}
		in := newInput(Header, kv.Name, kv.Field)
		// The placeholder shows that the value begins with a scheme, because a bare token is a common mistake.
		if in.Placeholder == "" && strings.EqualFold(kv.Name, "Authorization") {
			in.Placeholder = "Bearer …"
		}
		values, err := f.resolveField(in, kv.Field, kv.Variables)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			out[kv.Name] = values[0].String()
		}
	}
	for name, v := range f.source.Headers {
		if !headerName(name) {
			return nil, planError(ErrValue, shortText(name)+" is no name of a header", "")
		}
		// A header of the document in another spelling is replaced, not doubled.
		for existing := range out {
			if strings.EqualFold(existing, name) {
				name = existing
			}
		}
		out[name] = v
		// The document does not say whether the value is a secret, so that it counts as one.
		f.secrets = append(f.secrets, v)
	}
	// A line break would begin another header.
	for name, v := range out {
		if strings.ContainsAny(v, "\r\n\x00") {
			return nil, planError(ErrValue, "the header "+shortText(name)+" holds a line break", "")
		}
	}
	return out, nil
}

// headerName reports whether s is a token of RFC 9110, of a bounded length.
func headerName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= 0x20 || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
