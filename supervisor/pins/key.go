package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Key returns the name under which the pins of a server are kept: its id and the file that configures it, because two projects may
// give different servers the same id. A server of a file keeps its key when the file gives it another command or URL: the
// differences are then reported, until "mcpvisor remove" has forgotten it. The key of a server that no file configures also
// contains what it starts or dials.
func Key(server string, spec *messages.Spec) string {
	key := server + "\n" + spec.Source
	// A file identifies the server, also after its entry has changed.
	if filepath.IsAbs(spec.Source) {
		return key
	}
	// A server that the program or a message added has only its own content to identify it.
	parts := append([]string{spec.Name, spec.Command}, spec.Args...)
	if u, err := url.Parse(spec.URL); err == nil { // only the parts that are no secret
		parts = append(parts, u.Scheme, u.Host, u.Path)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return key + "\n" + hex.EncodeToString(sum[:8])
}

// sourceFile returns the file of a key; empty if the key has none.
func sourceFile(key string) string {
	_, rest, _ := strings.Cut(key, "\n")
	path, _, _ := strings.Cut(rest, "\n")
	if !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// strictness orders the treatments of a changed tool.
var strictness = map[string]int{messages.PinOff: 1, messages.PinWarn: 2, messages.PinHold: 3}

// Stricter returns the stricter of two treatments of a changed tool; an empty one is the least strict.
func Stricter(a, b string) string {
	if strictness[b] > strictness[a] {
		return b
	}
	return a
}
