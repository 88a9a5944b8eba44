package gateway

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A server of the modern era hands an agent a state that comes back with its next request. The server takes the agent that brings
// it for the one that got it, and all agents reach the server in the gateway's name. So the gateway seals the state for the principal, the
// server and the thing that was asked for, and refuses it from another principal.

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
	for _, part := range []string{r.Session.Principal.Name, r.Session.Principal.View, r.Session.Path.View, r.Session.Path.Server, r.Method, to.server, to.name} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// handleOwner returns what the state of a suspended call is bound to: the arguments, too, because the answers are about a call with
// these and no others.
func handleOwner(r *serve.Request, to named, arguments []byte) []byte {
	switch {
	case len(arguments) == 0:
		arguments = []byte("{}")
	case arguments[0] != '{': // the members of params, without braces
		arguments = append(append([]byte{'{'}, arguments...), '}')
	}
	if form, err := rawjson.Canonical(arguments); err == nil {
		arguments = form
	}
	sum := sha256.Sum256(arguments)
	return append(append(stateOwner(r, to), "suspended"...), sum[:]...)
}

// beginState returns the beginning of a state: until when it is good, in seconds since the gateway began, because the clock of the machine may
// be set meanwhile.
func (g *Gateway) beginState(lifetime time.Duration) []byte {
	return binary.AppendVarint(nil, int64((time.Since(g.began)+lifetime)/time.Second))
}

// sealHandle returns the state with which an agent comes back to a suspended call. It is good for an hour, so that an agent which is
// late learns what became of the call.
func (g *Gateway) sealHandle(r *serve.Request, c *modernCall, round uint64) string {
	plain := g.beginState(stateLifetime)
	plain = append(binary.AppendUvarint(plain, round), c.id...)
	return base64.RawURLEncoding.EncodeToString(g.states.Seal(nil, nil, plain, handleOwner(r, c.to, c.arguments)))
}

// openHandle returns which call, and which round of it, a state names; false if it is no state of a suspended call, or not that of
// this request.
func (g *Gateway) openHandle(q *outgoing) (id string, round uint64, ok bool) {
	plain, ok := g.unseal(q.state, handleOwner(q.r, q.to, q.arguments))
	if !ok {
		return "", 0, false
	}
	round, n := binary.Uvarint(plain)
	if n <= 0 {
		return "", 0, false
	}
	return string(plain[n:]), round, true
}

// unseal opens a state, and returns what stands behind its time.
func (g *Gateway) unseal(state, owner []byte) ([]byte, bool) {
	text, ok := rawjson.Text(state)
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil {
		return nil, false
	}
	plain, err := g.states.Open(nil, nil, sealed, owner)
	if err != nil {
		return nil, false
	}
	until, n := binary.Varint(plain)
	if n <= 0 || int64(time.Since(g.began)/time.Second) > until {
		return nil, false
	}
	return plain[n:], true
}

// sealInput seals the state in a result that asks for input; every other result is returned as it is.
func (g *Gateway) sealInput(r *serve.Request, to named, result []byte) ([]byte, *serve.Error) {
	if !r.Modern() || string(rawjson.Member(result, "resultType")) != `"input_required"` {
		return result, nil
	}
	value := rawjson.Member(result, "requestState")
	if rawjson.IsNull(value) {
		return result, nil
	}
	sealed := g.states.Seal(nil, nil, append(g.beginState(stateLifetime), value...), stateOwner(r, to))
	return rawjson.With(result, "requestState", rawjson.AppendText(nil, base64.RawURLEncoding.EncodeToString(sealed))), nil
}

// openState returns the server's own state, as JSON.
func (g *Gateway) openState(r *serve.Request, to named, state []byte) ([]byte, bool) {
	return g.unseal(state, stateOwner(r, to))
}
