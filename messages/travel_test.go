package messages_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// fillFields sets every field of a value to something else than its zero value, so that a field that is added later cannot be
// forgotten on the way.
func fillFields(t *testing.T, v reflect.Value, number *int) {
	t.Helper()
	*number++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000, int64(*number))))
		return
	case v.Type() == reflect.TypeFor[messages.Duration]():
		v.SetInt(int64(*number) * int64(time.Second))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(t, v.Elem(), number)
	case reflect.Struct:
		for i := range v.NumField() {
			// Where a spec stands does not travel.
			if v.Type() == reflect.TypeFor[messages.Spec]() && v.Type().Field(i).Tag.Get("json") == "-" {
				continue
			}
			fillFields(t, v.Field(i), number)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(fmt.Appendf(nil, `{"n": %d.0}`, *number))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillFields(t, v.Index(0), number)
		fillFields(t, v.Index(1), number)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillFields(t, key, number)
		fillFields(t, value, number)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *number))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*number))
	case reflect.Uint64:
		v.SetUint(uint64(*number))
	case reflect.Float64:
		v.SetFloat(float64(*number) / 2)
	default:
		t.Fatalf("a %s cannot be filled", v.Type())
	}
}

// travels checks that a value with every field set is the same after it was written as a message and read again.
func travels[T any, M proto.Message](t *testing.T, write func(T) M, read func(M) T) {
	t.Helper()
	var want T
	number := 0
	fillFields(t, reflect.ValueOf(&want).Elem(), &number)
	b, err := proto.Marshal(write(want))
	if err != nil {
		t.Fatal(err)
	}
	var m M
	m = m.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	got := read(m)
	for i := range reflect.TypeFor[T]().NumField() {
		if w, g := reflect.ValueOf(want).Field(i), reflect.ValueOf(got).Field(i); !reflect.DeepEqual(w.Interface(), g.Interface()) {
			t.Errorf("%T.%s: %+v became %+v", want, reflect.TypeFor[T]().Field(i).Name, w, g)
		}
	}
	var zero T
	if got := read(write(zero)); !reflect.DeepEqual(got, zero) {
		t.Errorf("the zero %T became %+v", zero, got)
	}
}

// TestEveryFieldTravels: another actor, and the control socket, get the same as the manager's own process. Status and Spec have forms of their
// own for actors: see TestAnEventTravels.
func TestEveryFieldTravels(t *testing.T) {
	travels(t, messages.Status.ToWholeProto, (*messages.ServerStatus).ToStatus)
	travels(t, messages.Spec.ToProto, func(p *messages.ServerSpec) messages.Spec {
		s := p.ToSpec()
		s.Scope = "" // it is not written: what comes by a message is of the runtime
		return s
	})
	travels(t, messages.Tool.ToProto, (*messages.ToolEntry).ToTool)
	travels(t, messages.Resource.ToProto, (*messages.ResourceEntry).ToResource)
	travels(t, messages.ResourceTemplate.ToProto, (*messages.ResourceTemplateEntry).ToTemplate)
	travels(t, messages.Prompt.ToProto, (*messages.PromptEntry).ToPrompt)
	travels(t, messages.CompleteRequest.ToProto, (*messages.Complete).ToRequest)
	travels(t, messages.Completion.ToProto, (*messages.CompleteReply).ToCompletion)
	travels(t, messages.SetServersResult.ToProto, (*messages.SetServersReply).ToResult)
	travels(t, func(p messages.Progress) *messages.CallProgress { return p.ToProto("x") }, (*messages.CallProgress).ToProgress)
}

// TestAnEventTravels: its status is that of the actors, without what the whole one has more.
func TestAnEventTravels(t *testing.T) {
	var want messages.Event
	number := 0
	fillFields(t, reflect.ValueOf(&want).Elem(), &number)
	want.Status.Config, want.Status.Tools, want.Status.Instructions = nil, nil, ""
	if got := want.ToProto().ToEvent(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v became %+v", want, got)
	}
}

// TestASchemaTravelsOnce: a tool's definition has its schemas, which are as large as all the rest of it.
func TestASchemaTravelsOnce(t *testing.T) {
	in, out := `{"type":"object","properties":{"q":{"type":"string"}}}`, `{"type":"object"}`
	for _, tool := range []messages.Tool{
		{Name: "both", InputSchema: []byte(in), OutputSchema: []byte(out), Raw: []byte(`{"outputSchema": ` + out + `, "inputSchema": ` + in + ` }`)},
		{Name: "one", InputSchema: []byte(in), Raw: []byte(`{"inputSchema":` + in + `}`)},
		{Name: "a default", InputSchema: []byte(out), Raw: []byte(`{"name":"a default"}`)},
		{Name: "no definition", InputSchema: []byte(in)},
		{Name: "no schema", Raw: []byte(`{}`)},
	} {
		p := tool.ToProto()
		if got := p.ToTool(); !reflect.DeepEqual(got, tool) {
			t.Errorf("%+v became %+v", tool, got)
		}
		b, err := proto.Marshal(p)
		if most := max(len(tool.Raw), len(tool.InputSchema)) + len(tool.OutputSchema) + 40; err != nil || len(b) > most {
			t.Errorf("%s: %d bytes, %v", tool.Name, len(b), err)
		}
	}
	// Another machine may say anything.
	for _, p := range []*messages.ToolEntry{
		{Definition: []byte(`{}`), InputStart: 1, InputEnd: 9}, {Definition: []byte(`{}`), InputStart: 2, InputEnd: 1},
		{OutputStart: 1 << 31, OutputEnd: 1<<32 - 1},
	} {
		if got := p.ToTool(); got.InputSchema != nil || got.OutputSchema != nil {
			t.Errorf("%v has the schemas %s, %s", p, got.InputSchema, got.OutputSchema)
		}
	}
}
