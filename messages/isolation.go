package messages

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Isolation says what a stdio server is kept from. Each field is a wish of its own, and the zero value of each asks for
// nothing. What the machine cannot give makes the server fail before anything of it runs, unless BestEffort is set; package
// transports/isolation says which kernel gives what, and in exact words what is then enforced.
type Isolation struct {
	// PrivateTemp gives each connection a folder of its own for temporary files, which TMPDIR, TMP and TEMP name. It is
	// removed when the connection has ended.
	PrivateTemp bool `json:"privateTemp"`
	// NoNewPrivileges makes programs with the rights of others (setuid, file capabilities) run without them. Write, Read and
	// Network imply it.
	NoNewPrivileges bool `json:"noNewPrivileges"`
	// Write, if not nil, are the only files and folders, with everything below them, that the server may change. Its
	// temporary folder is one of them if it has its own. A relative path starts at the server's working directory.
	Write []string `json:"write,omitzero"` // omitzero: an empty list, which allows none, must be written
	// Read, if not nil, are the files and folders that the server may read and execute besides those of the system, the
	// program itself and those of Write. Relative paths are as in Write.
	Read []string `json:"read,omitzero"`
	// Network is NetworkNone, NetworkLoopback, or empty for everything.
	Network string `json:"network,omitempty"`
	// Memory bounds the bytes that each process of the server may map to write; FileSize bounds the length of a file
	// that it writes; Files bounds the open descriptors, and CPUTime the processor time in all, of each of its
	// processes. 0 keeps the limit that mcpvisor itself has.
	Memory   Size     `json:"memory,omitempty"`
	FileSize Size     `json:"fileSize,omitempty"`
	Files    int      `json:"files,omitempty"`
	CPUTime  Duration `json:"cpuTime,omitempty"`
	// OwnSandbox leaves out of what Write, Read and Network forbid the system calls with which a program builds a sandbox for
	// its own children, and traces them: a browser needs them. It has no effect without one of these.
	OwnSandbox bool `json:"ownSandbox,omitempty"`
	// BestEffort starts the server also where something of this cannot be enforced. Its status says what.
	BestEffort bool `json:"bestEffort,omitempty"`
}

// What a server may reach.
const (
	// NetworkNone: it cannot create a socket of any kind, so that it reaches neither a network nor another program's socket
	// (D-Bus, Docker, an SSH agent). Pairs of sockets, which programs use to speak with what they start, work.
	NetworkNone = "none"
	// NetworkLoopback: it has a network of its own with nothing in it but its own loopback. Sockets in the file system can
	// be reached.
	NetworkLoopback = "loopback"
)

// DefaultIsolation returns the isolation that "isolation": true asks for: a folder of its own for temporary files, and no way to
// gain privileges.
func DefaultIsolation() *Isolation { return &Isolation{PrivateTemp: true, NoNewPrivileges: true} }

// Enforced says which wishes of an Isolation the system grants to a child, and which not: the second list is filled only for a
// server that was started with BestEffort, because others are not started then. Each entry is a clause for a person.
type Enforced struct {
	InForce []string `json:"inForce"`
	Missing []string `json:"missing,omitempty"`
}

// String returns all of it on one line: `private temp, no network; not: memory (macOS does not limit it)`.
func (e *Enforced) String() string {
	if e == nil {
		return ""
	}
	text := strings.Join(e.InForce, ", ")
	if text == "" {
		text = "nothing is in force"
	}
	if len(e.Missing) > 0 {
		text += "; not in force: " + strings.Join(e.Missing, ", ")
	}
	return text
}

// clone returns a copy that shares no list.
func (i *Isolation) clone() *Isolation {
	if i == nil {
		return nil
	}
	c := *i
	c.Write, c.Read = slices.Clone(i.Write), slices.Clone(i.Read)
	return &c
}

// normalized returns nil if the isolation asks for nothing; BestEffort alone asks for nothing.
func (i *Isolation) normalized() *Isolation {
	if i == nil || !i.Asks() {
		return nil
	}
	return i.clone()
}

// Asks reports whether anything is to be isolated.
func (i *Isolation) Asks() bool {
	return i != nil && (i.PrivateTemp || i.NoNewPrivileges || i.Write != nil || i.Read != nil || i.Network != "" ||
		i.Memory != 0 || i.FileSize != 0 || i.Files != 0 || i.CPUTime != 0)
}

// Size is a number of bytes that is written as text with a unit ("512MiB") in JSON, and read from such text or a number.
type Size int64

// units lists the units of ParseSize, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns the size in the largest unit of which it is a whole number.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// MarshalJSON implements json.Marshaler.
func (s Size) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON implements json.Unmarshaler. null changes nothing.
func (s *Size) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		text = string(b)
	}
	v, err := ParseSize(text)
	if err == nil {
		*s = v
	}
	return err
}

// ParseSize reads a whole number with a unit, "512MiB": TiB, GiB, MiB, KiB or B, in any case, whose letters iB may be left
// out; without a unit it is bytes. Units of 1000 (MB) are refused rather than taken for those of 1024.
func ParseSize(text string) (Size, error) {
	digits := strings.TrimLeft(text, "0123456789")
	n, err := strconv.ParseInt(text[:len(text)-len(digits)], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no whole number of bytes with a unit", quoteName(text))
	}
	unit := strings.ToLower(strings.TrimSpace(digits))
	for _, u := range units {
		if name := strings.ToLower(u.name); unit == name || unit == name[:1] || unit == "" && u.bytes == 1 {
			if n > math.MaxInt64/u.bytes {
				return 0, fmt.Errorf("%s is too large", quoteName(text))
			}
			return Size(n * u.bytes), nil
		}
	}
	return 0, fmt.Errorf("%s has a unit that is none of KiB, MiB, GiB and TiB", quoteName(text))
}
