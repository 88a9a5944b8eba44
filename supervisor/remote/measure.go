package remote

import (
	"errors"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that writes
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxFields bounds the fields of one frame, and of all messages in it together. A frame of the library has at
	// most 1,000 messages of some ten fields. A decoded field takes up to a few hundred bytes, however short it was,
	// so the size of a frame does not bound its cost.
	maxFields = 1 << 17
	// maxDepth bounds the nesting of messages. Those of package messages are nested four deep.
	maxDepth = 8
)

// errMeasure is the error of a message that must not be decoded.
var errMeasure = errors.New("too many fields, too deep, or not of the form that was agreed")

// measureFields counts the fields of a message before anything is decoded. fieldsLeft is the number that it may have;
// it returns the rest. Groups are refused, because no message of ours has one.
func measureFields(desc protoreflect.MessageDescriptor, raw []byte, fieldsLeft, depth int) (int, error) {
	if depth <= 0 {
		return 0, errMeasure
	}
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 || kind == protowire.StartGroupType || kind == protowire.EndGroupType {
			return 0, errMeasure
		}
		raw = raw[n:]
		// Every field counts once, also an empty or an unknown one.
		if fieldsLeft--; fieldsLeft < 0 {
			return 0, errMeasure
		}
		// Numbers cost one field each.
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, raw); n < 0 {
				return 0, errMeasure
			}
			raw = raw[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(raw)
		if n < 0 {
			return 0, errMeasure
		}
		raw = raw[n:]
		field := desc.Fields().ByNumber(number)
		switch {
		case field == nil: // decoding discards unknown fields
		case field.Kind() == protoreflect.MessageKind:
			var err error
			if fieldsLeft, err = measureFields(field.Message(), value, fieldsLeft, depth-1); err != nil {
				return 0, err
			}
		case field.IsList() && field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind: // a packed list: every byte can be an element
			if fieldsLeft -= len(value); fieldsLeft < 0 {
				return 0, errMeasure
			}
		}
	}
	return fieldsLeft, nil
}

// decodeBounded decodes a message that may have at most fieldsLeft fields, and returns the rest of them. After
// errMeasure the rest is 0: the sender gets no second try in the same frame.
func decodeBounded(to proto.Message, raw []byte, fieldsLeft int) (int, error) {
	fieldsLeft, err := measureFields(to.ProtoReflect().Descriptor(), raw, fieldsLeft, maxDepth)
	if err != nil {
		return 0, err
	}
	return fieldsLeft, proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth + 2}.Unmarshal(raw, to)
}

// boundedCodec is the codec of the server side: it decodes nothing that was not measured.
type boundedCodec struct{ encoding.CodecV2 }

// newCodec wraps grpc's codec for protobuf, which still encodes.
func newCodec() boundedCodec { return boundedCodec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2.
func (boundedCodec) Unmarshal(data mem.BufferSlice, to any) error {
	m, ok := to.(proto.Message)
	if !ok {
		return errMeasure
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool()) // the frame in one piece, in a pooled buffer
	defer buffer.Free()
	_, err := decodeBounded(m, buffer.ReadOnlyData(), maxFields)
	return err
}
