package auth

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"strconv"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/mcpvisor/mcpvisor/transports/files"
)

// storeHeader is the content of store.json: the origin of the key of the encrypted files. It holds no secret.
type storeHeader struct {
	Format int    `json:"format"` // storeFormat
	Key    string `json:"key"`    // passphrase, file or plain

	// For a passphrase: the parameters of Argon2id (RFC 9106), which stay those of the program that made the store.
	Salt      []byte `json:"salt,omitempty"`
	Time      uint32 `json:"time,omitempty"`
	MemoryKiB uint32 `json:"memoryKiB,omitempty"`
	Threads   uint8  `json:"threads,omitempty"`

	// Check is a known text sealed with the key. A wrong key does not open it, so that nothing is ever written with one.
	Check []byte `json:"check,omitempty"`
}

// The values of storeHeader.Key.
const (
	keyPassphrase = "passphrase"
	keyFile       = "file"
	keyPlain      = "plain"
)

// argonCost has the parameters for new stores. RFC 9106, 4: "If much less memory is available, a uniformly safe option is
// Argon2id with t=3 iterations, p=4 lanes, m=2^(16) (64 MiB of RAM), 128-bit salt, and 256-bit tag size." That takes a tenth of a
// second, once in a process.
var argonCost = storeHeader{Time: 3, MemoryKiB: 64 << 10, Threads: 4}

// The bounds of a header's parameters: a program that can write the header must not be able to use up the memory.
const (
	maxArgonTime   = 20
	maxArgonMemory = 1 << 20 // KiB
)

// The known text of storeHeader.Check, and the name under which it is sealed, which is no key of a secret.
const (
	checkText = "mcpvisor"
	checkName = "\x00check"
)

// newHeader describes a new store. sealerFor adds the check when the key is known.
func newHeader(kind string) *storeHeader {
	h := &storeHeader{Format: storeFormat, Key: kind}
	if kind == keyPassphrase {
		h.Time, h.MemoryKiB, h.Threads = argonCost.Time, argonCost.MemoryKiB, argonCost.Threads
		h.Salt = make([]byte, 16)
		_, _ = rand.Read(h.Salt) // never fails
	}
	return h
}

// parseHeader reads store.json and refuses parameters out of bounds. path is for errors.
func parseHeader(path string, b []byte) (*storeHeader, error) {
	h := &storeHeader{}
	format := files.Format{What: shortPath(path), Key: "format", Oldest: storeFormat, Newest: storeFormat}
	if _, err := format.Unmarshal(b, h); err != nil {
		return nil, formatError(path, err)
	}
	// A salt below 8 bytes or weaker parameters than any version has written mean a damaged or forged header.
	if h.Key != keyPassphrase && h.Key != keyFile && h.Key != keyPlain ||
		h.Key == keyPassphrase && (len(h.Salt) < 8 || h.Time < 1 || h.Time > maxArgonTime || h.Threads < 1 ||
			h.MemoryKiB < 8 || h.MemoryKiB > maxArgonMemory) {
		return nil, damagedError(path, "is damaged")
	}
	return h, nil
}

// deriveKey makes the key from a passphrase.
func (h *storeHeader) deriveKey(passphrase []byte) []byte {
	return argon2.IDKey(passphrase, h.Salt, h.Time, h.MemoryKiB, h.Threads, chacha20poly1305.KeySize)
}

// sealer encrypts and authenticates secrets, each together with the key it is stored under, so that files cannot be exchanged for
// one another: XChaCha20-Poly1305, whose nonces are long enough to be random. A nil sealer leaves secrets in the clear.
type sealer struct{ aead cipher.AEAD }

// newSealer fails only for a key of the wrong length.
func newSealer(key []byte) (*sealer, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, errors.New("a key has the wrong length")
	}
	return &sealer{aead}, nil
}

// storeFormat is the form of store.json, and of the files beside it. Each of them says it by itself.
const storeFormat = 1

// The first line of a file says whether the rest is sealed, and in which format.
const (
	sealedStart = "mcpvisor secret "
	plainStart  = "mcpvisor plain "
	sealedMagic = sealedStart + "1\n"
	plainMagic  = plainStart + "1\n"
)

// checkNewer returns an error if a newer program wrote the content of the file at path, which only it can read. Of every other
// content the sealer says whether it is its own.
func checkNewer(path string, content []byte) error {
	line, _, whole := bytes.Cut(content, []byte("\n"))
	number, ok := bytes.CutPrefix(line, []byte(sealedStart))
	if !ok {
		number, ok = bytes.CutPrefix(line, []byte(plainStart))
	}
	if n, err := strconv.Atoi(string(number)); ok && whole && err == nil && n > storeFormat {
		return formatError(path, &files.NewerError{What: shortPath(path), Version: n, Reads: storeFormat})
	}
	return nil
}

// seal returns the content of the file for a secret that is stored under name.
func (s *sealer) seal(name string, secret []byte) []byte {
	if s == nil {
		return append([]byte(plainMagic), secret...)
	}
	out := make([]byte, len(sealedMagic)+chacha20poly1305.NonceSizeX, len(sealedMagic)+len(secret)+64)
	// One allocation holds the magic, the nonce and the sealed secret.
	nonce := out[copy(out, sealedMagic):]
	_, _ = rand.Read(nonce) // never fails
	// The magic and the name are authenticated, so that a file renamed to another key does not open.
	return s.aead.Seal(out, nonce, secret, []byte(sealedMagic+name))
}

// open returns the secret in a file's content. It reports false for content that this sealer has not sealed under that name.
func (s *sealer) open(name string, content []byte) ([]byte, bool) {
	magic := plainMagic
	if s != nil {
		magic = sealedMagic
	}
	// A plain file in an encrypted store, or the reverse, was put there by another program.
	if len(content) < len(magic) || string(content[:len(magic)]) != magic {
		return nil, false
	}
	content = content[len(magic):]
	if s == nil {
		return content, true
	}
	if len(content) < chacha20poly1305.NonceSizeX {
		return nil, false
	}
	nonce, sealed := content[:chacha20poly1305.NonceSizeX], content[chacha20poly1305.NonceSizeX:]
	secret, err := s.aead.Open(nil, nonce, sealed, []byte(sealedMagic+name))
	return secret, err == nil
}
