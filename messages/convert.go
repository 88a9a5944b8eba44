package messages

import (
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// The files convert*.go are the only place that turns plain Go types into protobuf and back: this one has what describes a server.

// ToProto returns the protobuf form of the spec. Scope, Source and the texts about the spec's state are left out: a
// spec that comes by a message has ScopeRuntime.
func (s Spec) ToProto() *ServerSpec {
	p := &ServerSpec{}
	writeFields(reflect.ValueOf(s), p.ProtoReflect())
	return p
}

// ToSpec returns the Go form, with ScopeRuntime. A nil receiver gives the zero Spec with that scope.
func (p *ServerSpec) ToSpec() Spec {
	s := Spec{Scope: ScopeRuntime}
	readFields(p.ProtoReflect(), reflect.ValueOf(&s).Elem())
	return s
}

// fieldPair is a field of a Go struct, and the field of a message that holds the same.
type fieldPair struct {
	index int
	in    protoreflect.FieldDescriptor
}

// fieldPairs maps the types of Spec, Auth, Isolation and TLS to their pairs.
var fieldPairs sync.Map

// pairsOf finds the fields that a struct and a message have in common, by the name that they have in JSON; that of a duration
// ends in Ms in a message. A field of the struct without such a name, and one that the message lacks, do not travel: a test
// fails for the latter.
func pairsOf(t reflect.Type, message protoreflect.MessageDescriptor) []fieldPair {
	if known, ok := fieldPairs.Load(t); ok {
		return known.([]fieldPair)
	}
	var pairs []fieldPair
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if t.Field(i).Type == reflect.TypeFor[Duration]() {
			name += "Ms"
		}
		for n := range message.Fields().Len() {
			if in := message.Fields().Get(n); strings.EqualFold(in.JSONName(), name) {
				pairs = append(pairs, fieldPair{i, in})
			}
		}
	}
	fieldPairs.Store(t, pairs)
	return pairs
}

// writeFields writes a struct into a message. A zero field is not written.
func writeFields(from reflect.Value, to protoreflect.Message) {
	for _, p := range pairsOf(from.Type(), to.Descriptor()) {
		v := from.Field(p.index)
		switch {
		case v.IsZero():
		case p.in.IsMap():
			entries := to.Mutable(p.in).Map()
			for key, value := range v.Seq2() {
				entries.Set(protoreflect.ValueOfString(key.String()).MapKey(), protoreflect.ValueOfString(value.String()))
			}
		case p.in.IsList():
			appendTexts(to.Mutable(p.in).List(), v)
		// A list that may be present and empty is a message of its own.
		case v.Kind() == reflect.Slice:
			names := to.Mutable(p.in).Message()
			appendTexts(names.Mutable(names.Descriptor().Fields().Get(0)).List(), v)
		case p.in.Message() != nil:
			writeFields(v.Elem(), to.Mutable(p.in).Message())
		default:
			to.Set(p.in, scalarOf(reflect.Indirect(v), p.in.Kind()))
		}
	}
}

func appendTexts(to protoreflect.List, texts reflect.Value) {
	for i := range texts.Len() {
		to.Append(protoreflect.ValueOfString(texts.Index(i).String()))
	}
}

// scalarOf returns a text, truth value or number as a message holds it.
func scalarOf(v reflect.Value, in protoreflect.Kind) protoreflect.Value {
	switch {
	case in == protoreflect.StringKind:
		return protoreflect.ValueOfString(v.String())
	case in == protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.Bool())
	case in == protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(clampInt32(int(v.Int())))
	case v.Type() == reflect.TypeFor[Duration]():
		return protoreflect.ValueOfInt64(toMillis(Duration(v.Int())))
	}
	return protoreflect.ValueOfInt64(v.Int())
}

// readFields reads what writeFields has written. What a message does not have stays as it is.
func readFields(from protoreflect.Message, to reflect.Value) {
	for _, p := range pairsOf(to.Type(), from.Descriptor()) {
		if !from.Has(p.in) {
			continue
		}
		v, got := to.Field(p.index), from.Get(p.in)
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			got.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				v.SetMapIndex(reflect.ValueOf(key.String()), reflect.ValueOf(value.String()))
				return true
			})
		case reflect.Slice:
			if !p.in.IsList() {
				names := got.Message()
				got = names.Get(names.Descriptor().Fields().Get(0))
			}
			texts := make([]string, got.List().Len())
			for i := range texts {
				texts[i] = got.List().Get(i).String()
			}
			v.Set(reflect.ValueOf(texts))
		case reflect.Struct:
			readFields(got.Message(), v)
		case reflect.String:
			v.SetString(got.String())
		case reflect.Bool:
			v.SetBool(got.Bool())
		default:
			v.SetInt(got.Int())
			if v.Type() == reflect.TypeFor[Duration]() {
				v.SetInt(int64(fromMillis(got.Int())))
			}
		}
	}
}

// clampInt32 returns a bound in the range of protobuf. A larger one bounds nothing that a machine can hold, so that
// cutting it changes nothing.
func clampInt32(n int) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

func toMillis(d Duration) int64    { return time.Duration(d).Milliseconds() }
func fromMillis(ms int64) Duration { return Duration(time.Duration(ms) * time.Millisecond) }
