package messages

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// SetRequestID writes the request id of a command into its reply, if the reply has a field for it.
func SetRequestID(reply proto.Message, id string) {
	if id == "" || reply == nil {
		return
	}
	m := reply.ProtoReflect()
	if f := m.Descriptor().Fields().ByName("request_id"); f != nil && f.Kind() == protoreflect.StringKind {
		m.Set(f, protoreflect.ValueOfString(id))
	}
}
