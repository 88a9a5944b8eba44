package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// filler gives each field of a document its value, and remembers what it gave for the templates of URLs.
type filler struct {
	fill Fill
	// values are those of the arguments and variables so far, by flag, hint and name.
	values map[string]words
	// variables are answers that one input asked for and another shares.
	used  map[string]bool
	left  []string // optional inputs that have no value
	notes []string
	// secrets are what the person gave for secret inputs.
	secrets []string
}

func newFiller(f Fill) *filler {
	if f.Ask == nil {
		f.Ask = Defaults
	}
	return &filler{fill: f, values: map[string]words{}, used: map[string]bool{}}
}

func (f *filler) note(text string) {
	if !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

// input is a field as a person meets it.
func input(kind Kind, name string, d Field) Input {
	in := Input{Kind: kind, Name: name, Description: d.Description, Placeholder: d.Placeholder, Secret: d.IsSecret,
		Format: d.Format, Choices: d.Choices}
	if d.Default != nil && *d.Default != "" {
		in.Default, in.HasDefault = string(*d.Default), true
	}
	return in
}

// resolve gives the values of a field: several for repeated ones, none if it is optional and has none.
func (f *filler) resolve(in Input, d Field, variables map[string]Field) ([]words, error) {
	var out []words
	var err error
	if d.Value != nil && *d.Value != "" {
		out, err = f.fixed(in, string(*d.Value), d.IsRequired, variables)
	} else {
		out, err = f.free(in, d.IsRequired)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range out {
		if err := w.safe("the " + in.Label()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fixed is a value that the publisher wrote, with its variables put in. Those that were given several times make several
// values of a repeated input.
func (f *filler) fixed(in Input, template string, required bool, variables map[string]Field) ([]words, error) {
	rounds := 1
	for name := range variables {
		if in.Repeated {
			rounds = max(rounds, len(f.fill.Args[name]))
		}
	}
	var out []words
	for i := range rounds {
		absent := ""
		w, err := substitute(template, func(name string) (words, bool, error) {
			d, ok := variables[name]
			if !ok {
				return nil, false, nil
			}
			w, err := f.variable(in, name, d, required, i)
			if w == nil && err == nil {
				absent = name
			}
			return w, true, err
		})
		if err != nil {
			return nil, err
		}
		if absent != "" { // a half-filled value is worse than none
			f.left = append(f.left, in.Name)
			return nil, nil
		}
		out = append(out, w)
	}
	return out, nil
}

// variable is the value of one variable in round i; nil if it is optional, as what it is a part of, and has none.
func (f *filler) variable(of Input, name string, d Field, required bool, i int) (words, error) {
	if d.Value != nil && *d.Value != "" {
		return published(string(*d.Value)), nil
	}
	in := input(Variable, name, d)
	in.Of, in.Secret = of.Name, in.Secret || of.Secret
	if all := f.fill.Args[name]; len(all) > 0 {
		f.used[name] = true
		v := all[min(i, len(all)-1)]
		f.keep(in, v)
		return in.words(v), f.checked(in, v)
	}
	key := "variable " + name + " of " + of.Name
	if w, ok := f.values[key]; ok {
		return w, nil
	}
	got, err := f.free(in, d.IsRequired || required)
	if err != nil || len(got) == 0 {
		return nil, err
	}
	f.values[key] = got[0]
	return got[0], nil
}

// free is a value that the person may choose: what was given, else the answer if it is required, else the default.
func (f *filler) free(in Input, required bool) ([]words, error) {
	if all := f.given(in); len(all) > 0 {
		if len(all) > 1 && !in.Repeated {
			return nil, refuse(ErrValue, "the "+in.Label()+" takes one value, and several are given", "")
		}
		return f.own(in, all)
	}
	if !required {
		if in.HasDefault {
			return []words{published(in.Default)}, nil
		}
		f.left = append(f.left, in.Name)
		return nil, nil
	}
	answers, err := f.fill.Ask(in)
	if err != nil {
		return nil, err
	}
	answers = slices.DeleteFunc(slices.Clone(answers), func(s string) bool { return s == "" })
	switch {
	case len(answers) == 0:
		return nil, refuse(ErrMissing, "the "+in.Label()+" is required", "give it with "+in.flag())
	case len(answers) == 1 && in.HasDefault && answers[0] == in.Default:
		return []words{published(in.Default)}, nil // whoever typed it, these are the publisher's words
	}
	return f.own(in, answers)
}

func (f *filler) own(in Input, all []string) ([]words, error) {
	out := make([]words, len(all))
	for i, v := range all {
		if err := f.checked(in, v); err != nil {
			return nil, err
		}
		out[i] = in.words(v)
		f.keep(in, v)
	}
	return out, nil
}

// keep remembers a value that is not to be shown.
func (f *filler) keep(in Input, v string) {
	if in.Secret {
		f.secrets = append(f.secrets, v)
	}
}

func (f *filler) checked(in Input, v string) error {
	if err := in.Check(v); err != nil {
		return refuse(ErrValue, "the "+in.Label()+" does not fit: "+err.Error(), "")
	}
	return nil
}

// given are the values that the person gave for an input.
func (f *filler) given(in Input) []string {
	switch in.Kind {
	case Environment:
		if v, ok := f.fill.Env[in.Name]; ok {
			return []string{v}
		}
	case Header:
		for _, name := range slices.Sorted(maps.Keys(f.fill.Headers)) {
			if strings.EqualFold(name, in.Name) {
				return []string{f.fill.Headers[name]}
			}
		}
	default:
		for _, name := range []string{in.Name, strings.TrimLeft(in.Name, "-")} {
			if v, ok := f.fill.Args[name]; ok && name != "" {
				f.used[name] = true
				return v
			}
		}
	}
	return nil
}

// finish refuses what was given and used by nothing, and says what was left out.
func (f *filler) finish() error {
	for _, name := range slices.Sorted(maps.Keys(f.fill.Args)) {
		if !f.used[name] {
			return refuse(ErrValue, "nothing takes the argument "+messages.Line(name, 80),
				"a value that the publisher has fixed cannot be given")
		}
	}
	if len(f.left) > 0 {
		slices.Sort(f.left)
		f.note("optional, and left out: " + messages.Line(strings.Join(slices.Compact(f.left), ", "), 400))
	}
	return nil
}
