package control

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/mcpvisor/mcpvisor/messages"
)

// An answer on the socket is a stream of frames. Each frame holds one message of the vocabulary: the length of its name as a
// varint, the name, the length of its protobuf form as a varint, and that.

const (
	// messagePrefix is the protobuf package of the vocabulary; the names on the socket are without it.
	messagePrefix = "mcpvisor."
	// maxName bounds the name of a message, in bytes.
	maxName = 64
	// maxMessage bounds one message of an answer in bytes, far above the largest result that a manager accepts.
	maxMessage = 1 << 30
)

// nameOf returns a message's name on the socket.
func nameOf(m proto.Message) string { return string(m.ProtoReflect().Descriptor().Name()) }

// newMessage returns an empty message of the vocabulary, nil for a name that it does not have.
func newMessage(name string) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(messagePrefix + name))
	if err != nil {
		return nil
	}
	return t.New().Interface()
}

// writeFrame writes one message. The caller serialises the writes to w.
func writeFrame(w io.Writer, m proto.Message) error {
	body, err := encodeMessage(m)
	if err != nil {
		return err
	}
	name := nameOf(m)
	head := binary.AppendUvarint(nil, uint64(len(name)))
	head = append(head, name...)
	head = binary.AppendUvarint(head, uint64(len(body)))
	// The body is not copied behind the head: a result may have many megabytes.
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

// errMalformed is wrapped by the errors of readFrame about bytes that are no frame; all others are the reader's own.
var errMalformed = errors.New("not a message of the control socket")

// readFrame reads one message. The end of r before a frame is io.EOF, within one io.ErrUnexpectedEOF.
func readFrame(r *bufio.Reader) (proto.Message, error) {
	name, err := readChunk(r, maxName)
	if err != nil {
		return nil, err
	}
	body, err := readChunk(r, maxMessage)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	m := newMessage(string(name))
	if m == nil {
		return nil, fmt.Errorf("%w: there is no %q", errMalformed, messages.Line(string(name), maxName))
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("%w: a %s cannot be read", errMalformed, name)
	}
	return m, nil
}

// readChunk reads a length and as many bytes. The memory grows with the bytes that arrive, not with the length that is claimed.
func readChunk(r *bufio.Reader, limit uint64) ([]byte, error) {
	size, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		return nil, err
	case size > limit:
		return nil, fmt.Errorf("%w: %d bytes where at most %d may be", errMalformed, size, limit)
	}
	var chunk bytes.Buffer
	if _, err := io.CopyN(&chunk, r, int64(size)); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return chunk.Bytes(), nil
}

// encodeMessage returns the protobuf form. Texts of a protobuf message are UTF-8, and paths and names of this machine need not be:
// in a copy of such a message what is no UTF-8 is replaced, as in JSON, so that one file's name does not cost the whole answer.
func encodeMessage(m proto.Message) ([]byte, error) {
	if body, err := proto.Marshal(m); err == nil {
		return body, nil
	}
	m = proto.Clone(m)
	replaceInvalid(m.ProtoReflect())
	return proto.Marshal(m)
}

// replaceInvalid makes UTF-8 of all texts of a message.
func replaceInvalid(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			replaceInvalidMap(f, v.Map())
		case f.IsList():
			for i := range v.List().Len() {
				v.List().Set(i, validValue(f, v.List().Get(i)))
			}
		default:
			m.Set(f, validValue(f, v))
		}
		return true
	})
}

// replaceInvalidMap makes UTF-8 of the keys and values of a map. Two keys that become equal leave one of their values.
func replaceInvalidMap(f protoreflect.FieldDescriptor, m protoreflect.Map) {
	var keys []protoreflect.MapKey // the map must not change while it is walked
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	for _, k := range keys {
		value := validValue(f.MapValue(), m.Get(k))
		m.Clear(k)
		m.Set(validValue(f.MapKey(), k.Value()).MapKey(), value)
	}
}

// validValue returns a value without bytes that are no UTF-8, if it is a text, and otherwise as it is.
func validValue(f protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.ToValidUTF8(v.String(), "\uFFFD"))
	case protoreflect.MessageKind:
		replaceInvalid(v.Message())
	default: // no text in it
	}
	return v
}
