package control

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// written returns the frames of messages.
func written(t testing.TB, all ...proto.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, m := range all {
		if err := writeFrame(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// A path need not be UTF-8, and protobuf refuses a whole message for it: what cannot be written is replaced, and nothing else.
func TestWhatIsNoTextIsReplaced(t *testing.T) {
	in := &messages.StatusReply{Servers: []*messages.ServerStatus{{
		Name: "a", Config: &messages.ServerSpec{Cwd: "/\xff", Args: []string{"ok", "\xfe"}, Env: map[string]string{"\xfd": "v", "K": "\xfc"}},
	}}, Failure: &messages.Failure{Data: []byte("\xff")}}
	before := proto.Clone(in).(*messages.StatusReply)
	m, err := readFrame(bufio.NewReader(bytes.NewReader(written(t, in))))
	if err != nil {
		t.Fatal(err)
	}
	out := m.(*messages.StatusReply)
	c := out.GetServers()[0].GetConfig()
	if c.GetCwd() != "/\uFFFD" || c.GetArgs()[0] != "ok" || c.GetArgs()[1] != "\uFFFD" || c.GetEnv()["\uFFFD"] != "v" ||
		c.GetEnv()["K"] != "\uFFFD" || len(c.GetEnv()) != 2 || string(out.GetFailure().GetData()) != "\xff" {
		t.Errorf("%v", out)
	}
	if in.GetServers()[0].GetConfig().GetCwd() != before.GetServers()[0].GetConfig().GetCwd() {
		t.Error("the message itself was changed, which others may be reading")
	}
}

// An answer that breaks off is told from one that is no answer, and from its end.
func TestHowAnAnswerCanEnd(t *testing.T) {
	whole := written(t, &messages.CallToolReply{Outcome: "result", Result: []byte("{}")})
	for name, c := range map[string]struct {
		bytes string
		want  error
	}{
		"nothing":      {"", io.EOF},
		"half a frame": {string(whole[:len(whole)-1]), io.ErrUnexpectedEOF},
		"half a name":  {string(whole[:3]), io.ErrUnexpectedEOF},
		"no body":      {string(whole[:1+whole[0]]), io.ErrUnexpectedEOF},
		"long name":    {"\xff\xff\x03" + "x", errMalformed},
		"unknown name": {"\x01x\x00", errMalformed},
		"huge body":    {"\x04Done\xff\xff\xff\xff\xff\x01", errMalformed},
		"no protobuf":  {"\x04Done\x01\xff", errMalformed},
		"not ours":     {"\x19google.protobuf.Timestamp\x00", errMalformed},
	} {
		m, err := readFrame(bufio.NewReader(bytes.NewReader([]byte(c.bytes))))
		if !errors.Is(err, c.want) || m != nil {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

// Every row of the table is a command of the vocabulary.
func TestCommandsAreMessages(t *testing.T) {
	for name := range commands {
		if newMessage(name) == nil {
			t.Errorf("there is no message %s", name)
		}
	}
}

// What a process on the other side of the socket writes never makes the reader panic, or hold more than was sent.
func FuzzReadFrame(f *testing.F) {
	f.Add(written(f, &messages.WatchEvent{Kind: "phase", Status: &messages.ServerStatus{Name: "a"}}, &messages.Done{}))
	f.Add([]byte("\x04Done\xff\xff\xff\xff\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			m, err := readFrame(r)
			if err != nil {
				return
			}
			if second, err := readFrame(bufio.NewReader(bytes.NewReader(written(t, m)))); err != nil || !proto.Equal(m, second) {
				t.Errorf("%v became %v (%v)", m, second, err)
			}
		}
	})
}
