package gateway

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A server of the modern era hands an agent a state that comes back with its next request. The server takes whoever brings it for the
// one who got it, and all agents reach it in the gateway's name; so the state is sealed for the principal, the server and the thing
// that was asked for, and another one cannot bring it.

// stateLifetime is the time in which an agent may answer.
const stateLifetime = time.Hour

// newStateCipher makes the cipher of one gateway. Its key ends with the process: a state of another process is refused.
func newStateCipher() cipher.AEAD {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has the length of one
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the block size of GCM
	}
	return aead
}

// stateOwner returns what a state is bound to.
func stateOwner(r *serve.Request, to named) []byte {
	var b []byte
	for _, part := range []string{r.Session.Principal.Name, r.Method, to.server, to.name} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// sealInput seals the state in a result that asks for input; every other result is returned as it is.
func (g *Gateway) sealInput(r *serve.Request, to named, result []byte) ([]byte, *serve.Error) {
	if !r.Modern() || string(rawjson.Member(result, "resultType")) != `"input_required"` {
		return result, nil
	}
	for o := rawjson.ObjectAt(result, 0, 0); o.Next(); {
		at := o.Position()
		value := o.Skip()
		if string(o.Name) != "requestState" || rawjson.IsNull(value) {
			continue
		}
		plain := binary.AppendVarint(nil, time.Now().Add(stateLifetime).Unix())
		sealed := g.states.Seal(nil, nil, append(plain, value...), stateOwner(r, to))
		b := append([]byte(nil), result[:at]...)
		b = rawjson.AppendText(b, base64.RawURLEncoding.EncodeToString(sealed))
		return append(b, result[o.Position():]...), nil
	}
	return result, nil
}

// openState returns the server's own state, as JSON.
func (g *Gateway) openState(r *serve.Request, to named, state []byte) ([]byte, bool) {
	text, ok := rawjson.Text(state)
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil {
		return nil, false
	}
	plain, err := g.states.Open(nil, nil, sealed, stateOwner(r, to))
	if err != nil {
		return nil, false
	}
	until, n := binary.Varint(plain)
	if n <= 0 || time.Now().Unix() > until {
		return nil, false
	}
	return plain[n:], true
}
