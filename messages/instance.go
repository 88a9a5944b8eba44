package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Share says who shares the connection, and so the process or the session, of a server.
type Share string

const (
	// ShareAll (the default) is one connection for all callers.
	ShareAll Share = "all"
	// SharePrincipal gives each caller that has a name (WithCaller) an instance of its own: a process, or a session, with its own
	// state, its own sign-in and its own restarts. Callers without a name share the server's own connection, which also lists the
	// tools that are offered before a caller has an instance.
	SharePrincipal Share = "principal"
)

const (
	// DefaultMaxInstances bounds the instances of one server: each may be a process of 100 MB.
	DefaultMaxInstances = 32
	// DefaultInstanceIdle is the time after which an instance that nobody used ends.
	DefaultInstanceIdle = 10 * time.Minute
)

// The bounds of a principal that stands in an instance's name as it is, and of the readable part of any other one, in bytes.
const (
	maxPlainPrincipal  = 64
	maxShownPrincipal  = 24
	instanceHashLength = 32 // characters: 128 bit, because a principal may be chosen to meet another's
)

// InstanceName returns the name of the instance that a server has for a principal: server@principal. Status, history, logs, phase
// events and sign-ins have it. It is a pure function, and no two pairs share a name: a principal of 1 to 64 letters, digits and
// ". _ + @ -" stands in it as it is; of every other text (longer, or with characters that a terminal, a file or a reader could
// mistake), and for a server whose own name contains an @, 24 characters at most stand there, and ~ with 128 bit of the SHA-256 of
// both names.
//
//	github, anna                github@anna
//	github, anna@example.com    github@anna@example.com
//	github, two words           github@two_words~42acb542a1eb46d57c162a7f6e0ba872
func InstanceName(server, principal string) string {
	if isPlainPrincipal(principal) && !strings.Contains(server, "@") {
		return server + "@" + principal
	}
	sum := sha256.Sum256([]byte(strconv.Itoa(len(server)) + "\n" + server + principal))
	var shown strings.Builder
	for i := 0; i < len(principal) && shown.Len() < maxShownPrincipal; i++ {
		c := principal[i]
		switch {
		case principalByte(c):
			shown.WriteByte(c)
		// One sign for each character: the further bytes of one say nothing.
		case c < 0x80 || c >= 0xc0:
			shown.WriteByte('_')
		}
	}
	return server + "@" + shown.String() + "~" + hex.EncodeToString(sum[:])[:instanceHashLength]
}

func isPlainPrincipal(s string) bool {
	for i := range len(s) {
		if !principalByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxPlainPrincipal
}

func principalByte(c byte) bool {
	return nameByte(c) || c == '.' || c == '+' || c == '@'
}
