package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Key is the name under which the pins of a server are kept: its id and the file that configures it, because two projects may
// call different servers the same. A server of a file stays who it is when the file gives it another command or URL: what
// differs then is shown, until "mcpvisor remove" has forgotten it. One that no file configures is who it is by what it starts
// or dials as well.
func Key(server string, spec *messages.Spec) string {
	key := server + "\n" + spec.Source
	if filepath.IsAbs(spec.Source) {
		return key
	}
	parts := append([]string{spec.Name, spec.Command}, spec.Args...)
	if u, err := url.Parse(spec.URL); err == nil { // without what may be secret
		parts = append(parts, u.Scheme, u.Host, u.Path)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return key + "\n" + hex.EncodeToString(sum[:8])
}

// sourceFile is the file of a key; empty if it is none.
func sourceFile(key string) string {
	_, rest, _ := strings.Cut(key, "\n")
	path, _, _ := strings.Cut(rest, "\n")
	if !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// strictness orders what is done about a changed tool.
var strictness = map[string]int{messages.PinOff: 1, messages.PinWarn: 2, messages.PinHold: 3}

// Stricter is the stricter of two words for what is done about a changed tool; an empty one says nothing.
func Stricter(a, b string) string {
	if strictness[b] > strictness[a] {
		return b
	}
	return a
}
