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
	// maxFields bounds the fields of one frame, and of all messages in it together. A frame of the library has at most
	// 1,000 messages of some ten fields. What is decoded takes up to a few hundred bytes for each, however short it was.
	maxFields = 1 << 17
	// maxDepth bounds how deep messages stand in each other. Ours stand four deep.
	maxDepth = 8
)

var errMeasure = errors.New("too many fields, too deep, or not of the form that was agreed")

// measureFields counts the fields of a message before anything is decoded. left is how many there may be; what remains of it is
// returned.
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
		if fieldsLeft--; fieldsLeft < 0 {
			return 0, errMeasure
		}
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
		case field == nil: // unknown; it is not decoded
		case field.Kind() == protoreflect.MessageKind:
			var err error
			if fieldsLeft, err = measureFields(field.Message(), value, fieldsLeft, depth-1); err != nil {
				return 0, err
			}
		case field.IsList() && field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind: // packed
			if fieldsLeft -= len(value); fieldsLeft < 0 {
				return 0, errMeasure
			}
		}
	}
	return fieldsLeft, nil
}

// decodeBounded reads a message that may have at most left fields, and returns how many are left.
func decodeBounded(to proto.Message, raw []byte, fieldsLeft int) (int, error) {
	fieldsLeft, err := measureFields(to.ProtoReflect().Descriptor(), raw, fieldsLeft, maxDepth)
	if err != nil {
		return 0, err
	}
	return fieldsLeft, proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth + 2}.Unmarshal(raw, to)
}

// boundedCodec decodes nothing that was not measured.
type boundedCodec struct{ encoding.CodecV2 }

func newCodec() boundedCodec { return boundedCodec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2.
func (boundedCodec) Unmarshal(data mem.BufferSlice, to any) error {
	m, ok := to.(proto.Message)
	if !ok {
		return errMeasure
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	_, err := decodeBounded(m, buffer.ReadOnlyData(), maxFields)
	return err
}
