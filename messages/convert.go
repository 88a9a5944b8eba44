package messages

import (
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The files convert*.go are the only place that turns plain Go types into protobuf and back. This one has how specs and the like are
// converted, of which there are few and each has many fields: field by field, by their names. What comes often is written out beside it.

// protoOf fills a message with what a struct holds.
func protoOf[M proto.Message](from any, into M) M {
	writeFields(reflect.ValueOf(from), into.ProtoReflect())
	return into
}

// goOf returns what a message holds; nothing of a nil one.
func goOf[T any](m proto.Message) (v T) {
	readFields(m.ProtoReflect(), reflect.ValueOf(&v).Elem())
	return v
}

// fieldPair is a field of a Go struct, and the field of a message that holds the same.
type fieldPair struct {
	index int
	in    protoreflect.FieldDescriptor
}

// fieldPairs maps the types of structs to their pairs.
var fieldPairs sync.Map

// pairsOf finds the fields that a struct and a message have in common. They have one name, but for underscores, case and the _ms
// of a duration; a tag proto gives the name in the message where it is another. What has no counterpart does not travel, or is
// converted by hand: a test finds what was forgotten.
func pairsOf(t reflect.Type, message protoreflect.MessageDescriptor) []fieldPair {
	if known, ok := fieldPairs.Load(t); ok {
		return known.([]fieldPair)
	}
	var pairs []fieldPair
	for i := range t.NumField() {
		name, tagged := t.Field(i).Tag.Lookup("proto")
		if !tagged {
			name = t.Field(i).Name
		}
		for n := range message.Fields().Len() {
			in := message.Fields().Get(n)
			other := string(in.Name())
			if t.Field(i).Type == reflect.TypeFor[Duration]() {
				other = strings.TrimSuffix(other, "_ms")
			}
			if strings.EqualFold(strings.ReplaceAll(other, "_", ""), strings.ReplaceAll(name, "_", "")) {
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
		if v.IsZero() {
			continue
		}
		switch v = reflect.Indirect(v); {
		case p.in.IsMap():
			entries := to.Mutable(p.in).Map()
			for key, value := range v.Seq2() {
				entries.Set(protoreflect.ValueOfString(key.String()).MapKey(), protoreflect.ValueOfString(value.String()))
			}
		case p.in.IsList():
			writeList(v, to.Mutable(p.in).List())
		case p.in.Message() == nil:
			to.Set(p.in, scalarOf(v, p.in))
		// A list that may be present and empty is a message of its own.
		case v.Kind() == reflect.Slice:
			names := to.Mutable(p.in).Message()
			writeList(v, names.Mutable(names.Descriptor().Fields().Get(0)).List())
		default:
			writeFields(v, to.Mutable(p.in).Message())
		}
	}
}

// writeList appends the texts of a list.
func writeList(from reflect.Value, to protoreflect.List) {
	for i := range from.Len() {
		to.Append(protoreflect.ValueOfString(from.Index(i).String()))
	}
}

// scalarOf returns a text, truth value or number as a field of a message holds it.
func scalarOf(v reflect.Value, in protoreflect.FieldDescriptor) protoreflect.Value {
	switch in.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.String())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.Bool())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(clampInt32(int(v.Int())))
	default:
		if v.Type() == reflect.TypeFor[Duration]() {
			return protoreflect.ValueOfInt64(time.Duration(v.Int()).Milliseconds())
		}
		return protoreflect.ValueOfInt64(v.Int())
	}
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
		switch {
		case p.in.IsMap():
			v.Set(reflect.MakeMap(v.Type()))
			got.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				v.SetMapIndex(reflect.ValueOf(key.String()), reflect.ValueOf(value.String()))
				return true
			})
		case p.in.IsList():
			readList(got.List(), v)
		case p.in.Message() == nil:
			readScalar(got, v)
		case v.Kind() == reflect.Slice:
			names := got.Message()
			readList(names.Get(names.Descriptor().Fields().Get(0)).List(), v)
		default:
			readFields(got.Message(), v)
		}
	}
}

// readList makes a list of texts, which is not nil.
func readList(from protoreflect.List, to reflect.Value) {
	to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
	for i := range from.Len() {
		to.Index(i).SetString(from.Get(i).String())
	}
}

// readScalar reads what scalarOf has made.
func readScalar(got protoreflect.Value, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(got.String())
	case reflect.Bool:
		v.SetBool(got.Bool())
	default:
		v.SetInt(got.Int())
		if v.Type() == reflect.TypeFor[Duration]() {
			v.SetInt(int64(time.Duration(got.Int()) * time.Millisecond))
		}
	}
}

// clampInt32 returns a bound in the range of protobuf. A larger one bounds nothing that a machine can hold, so that
// cutting it changes nothing.
func clampInt32(n int) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }
