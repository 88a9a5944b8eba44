package plan

import (
	"strings"
)

// arguments gives the words of a command line. A flag and its value are two words, as nearly every program takes them;
// they are one word, --flag=value, if the flag's name ends in = or the value is a truth value, which programs do not take
// as a word of its own.
func (f *filler) arguments(list []Argument) ([]words, error) {
	var out []words
	for i := range list {
		w, err := f.argument(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	return out, nil
}

func (f *filler) argument(a *Argument) ([]words, error) {
	name := a.Name
	switch a.Type {
	case "named":
		if name == "" {
			return nil, refuse(ErrUnusable, "a named argument of the package has no name", "")
		}
		if a.bare() {
			w := published(name)
			return []words{w}, w.safe("the argument " + short(name))
		}
	case "positional":
		if name == "" {
			name = a.ValueHint
		}
		if name == "" {
			name = "value"
		}
	default:
		return nil, refuse(ErrUnusable, "an argument of the package is of the type "+short(a.Type)+
			", which is neither named nor positional", "")
	}
	in := input(ArgumentOf, name, a.Field)
	in.Repeated = a.IsRepeated
	values, err := f.resolve(in, a.Field, a.Variables)
	if err != nil {
		return nil, err
	}
	var out []words
	for _, v := range values {
		f.values[name] = v
		if a.ValueHint != "" {
			f.values[a.ValueHint] = v
		}
		switch {
		case a.Type == "positional":
			out = append(out, v)
		case strings.HasSuffix(name, "="):
			out = append(out, append(published(name), v...))
		case a.Format == "boolean":
			out = append(out, append(published(name+"="), v...))
		default:
			out = append(out, published(name), v)
		}
	}
	for _, w := range out {
		if err := w.safe("the argument " + short(name)); err != nil {
			return nil, err
		}
	}
	if a.IsSecret && len(out) > 0 {
		f.note("the secret " + short(name) + " is an argument of the command, which other programs of this machine can see")
	}
	return out, nil
}

// bare reports whether a named argument is a flag without a value: its value is there and empty, or nothing says that it
// has one. A description alone does not make it one: "--port, the port to listen on" wants a value.
func (a *Argument) bare() bool {
	if a.Value != nil {
		return *a.Value == "" && !a.IsRequired && a.Default == nil
	}
	return a.Default == nil && a.ValueHint == "" && a.Description == "" && a.Format == "" && a.Placeholder == "" &&
		len(a.Choices) == 0 && !a.IsSecret && !a.IsRequired
}

// environment gives the variables that the server is started with.
func (f *filler) environment(list []KeyValue) (map[string]words, error) {
	out := map[string]words{}
	for i := range list {
		kv := &list[i]
		if !envName(kv.Name) {
			return nil, refuse(ErrUnusable, "the package declares the environment variable "+short(kv.Name)+
				", which is no name of one", "")
		}
		values, err := f.resolve(input(Environment, kv.Name, kv.Field), kv.Field, kv.Variables)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			out[kv.Name], f.values[kv.Name] = values[0], values[0]
		}
	}
	for name, v := range f.fill.Env {
		if !envName(name) {
			return nil, refuse(ErrValue, short(name)+" is no name of an environment variable", "")
		}
		out[name] = words{{text: v, own: true, secret: true}} // nobody said that it is none
		f.secrets = append(f.secrets, v)
	}
	return out, nil
}

func envName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= 0x20 || r >= 0x7f || r == '=' || r == '$' || r == '{' || r == '}'
	})
}

// headers gives the headers of requests.
func (f *filler) headers(list []KeyValue) (map[string]string, error) {
	out := map[string]string{}
	for i := range list {
		kv := &list[i]
		if !headerName(kv.Name) {
			return nil, refuse(ErrUnusable, "the header "+short(kv.Name)+" has a name that no header can have", "")
		}
		in := input(Header, kv.Name, kv.Field)
		if in.Placeholder == "" && strings.EqualFold(kv.Name, "Authorization") {
			in.Placeholder = "Bearer …"
		}
		values, err := f.resolve(in, kv.Field, kv.Variables)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			out[kv.Name] = values[0].String()
		}
	}
	for name, v := range f.fill.Headers {
		if !headerName(name) {
			return nil, refuse(ErrValue, short(name)+" is no name of a header", "")
		}
		for had := range out {
			if strings.EqualFold(had, name) {
				name = had
			}
		}
		out[name] = v
		f.secrets = append(f.secrets, v)
	}
	for name, v := range out {
		if strings.ContainsAny(v, "\r\n\x00") {
			return nil, refuse(ErrValue, "the header "+short(name)+" holds a line break", "")
		}
	}
	return out, nil
}

// headerName is RFC 9110's token.
func headerName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= 0x20 || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
