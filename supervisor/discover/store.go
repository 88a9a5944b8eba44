package discover

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// store is the form of the file of approvals.
type store struct {
	Version int `json:"version"`
	// Files are the approvals by file, as it was found, and server.
	Files map[string]map[string]record `json:"files,omitempty"`
	// Shown are the hashes of what the person was shown last, by file and server.
	Shown map[string]map[string]string `json:"shown,omitempty"`
}

// record is one approval.
type record struct {
	// Hash is that of the config.Binding that was approved, Variables and Sums its lists, the latter with the SHA-256 of each file.
	Hash      string            `json:"hash,omitempty"`
	Variables []string          `json:"variables,omitempty"`
	Sums      map[string]string `json:"files,omitempty"`
	// Own says that the person wrote the entry through mcpvisor.
	Own bool `json:"own,omitempty"`
	// Old says that an older version approved the entry, by less than what counts now.
	Old bool `json:"old,omitempty"`
}

const (
	storeVersion = 2
	oldVersion   = 1
	// maxStore bounds the store in bytes.
	maxStore = 16 << 20
)

// parseStore reads what a store holds. Approvals of version 1 are kept as such: why they do not hold any more is to be said.
func parseStore(b []byte) (store, error) {
	empty := store{Version: storeVersion}
	var s struct {
		Version int                                   `json:"version"`
		Files   map[string]map[string]json.RawMessage `json:"files"`
		Shown   map[string]map[string]string          `json:"shown"`
	}
	switch err := rawjson.Unmarshal(b, &s); {
	case err != nil:
		return empty, errors.New("the store of approvals is damaged")
	case s.Version != storeVersion && s.Version != oldVersion:
		return empty, fmt.Errorf("the store of approvals has version %d, which this program does not know", s.Version)
	}
	out := store{Version: storeVersion, Files: map[string]map[string]record{}, Shown: s.Shown}
	for file, servers := range s.Files {
		out.Files[file] = map[string]record{}
		for name, raw := range servers {
			r := record{Old: true}
			if s.Version == storeVersion {
				r = record{}
				if rawjson.Unmarshal(raw, &r) != nil {
					return empty, errors.New("the store of approvals is damaged")
				}
			}
			out.Files[file][name] = r
		}
	}
	return out, nil
}

// readStore reads the store at path. A missing one is empty.
func readStore(path string) (store, error) {
	empty := store{Version: storeVersion}
	if path == "" {
		return empty, nil
	}
	if why := writtenByOthers(path); why != "" {
		return empty, errors.New("the store of approvals is not believed: " + why + "; make it yours (chown, chmod go-w)")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty, nil
	case err != nil:
		return empty, errors.New("the store of approvals: " + why(err))
	case !info.Mode().IsRegular():
		return empty, errors.New("the store of approvals is no regular file")
	case info.Size() > maxStore:
		return empty, errors.New("the store of approvals is too large")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return empty, errors.New("the store of approvals: " + why(err))
	}
	return parseStore(b)
}

// change applies f to the store as it is now: another process may have written it meanwhile.
func (a *Approvals) change(f func(now *store)) error {
	now := store{}
	err := Edit(a.path, func([]byte) ([]byte, error) {
		var err error
		if now, err = readStore(a.path); err != nil {
			return nil, a.failed(err.Error(), "mend or delete "+a.path, err)
		}
		if f(&now); now.Files == nil && now.Shown == nil {
			return nil, nil
		}
		text, err := json.MarshalIndent(now, "", "  ")
		return append(text, '\n'), err
	})
	var told *messages.Error
	switch {
	case errors.As(err, &told):
		return err
	case err != nil:
		return a.failed("the approval cannot be written to "+a.path+": "+why(err), "", err)
	}
	a.store = now
	return nil
}

// put sets what stands under a file and a server.
func put[V any](in *map[string]map[string]V, file, server string, v V) {
	if *in == nil {
		*in = map[string]map[string]V{}
	}
	inner := maps.Clone((*in)[file])
	if inner == nil {
		inner = map[string]V{}
	}
	inner[server] = v
	(*in)[file] = inner
}

// drop takes out what stands under a file and a server.
func drop[V any](in map[string]map[string]V, file, server string) {
	delete(in[file], server)
	if len(in[file]) == 0 {
		delete(in, file)
	}
}
