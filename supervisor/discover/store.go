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

// approvalStore is the form of the file of approvals.
type approvalStore struct {
	Version int `json:"version"`
	// Files are the approvals by file, as it was found, and server.
	Files map[string]map[string]approvalRecord `json:"files,omitempty"`
	// Shown are the hashes of what the person was shown last, by file and server.
	Shown map[string]map[string]string `json:"shown,omitempty"`
}

// approvalRecord is one approval.
type approvalRecord struct {
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
func parseStore(b []byte) (approvalStore, error) {
	empty := approvalStore{Version: storeVersion}
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
	out := approvalStore{Version: storeVersion, Files: map[string]map[string]approvalRecord{}, Shown: s.Shown}
	for file, servers := range s.Files {
		out.Files[file] = map[string]approvalRecord{}
		for name, raw := range servers {
			r := approvalRecord{Old: true}
			if s.Version == storeVersion {
				r = approvalRecord{}
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
func readStore(path string) (approvalStore, error) {
	empty := approvalStore{Version: storeVersion}
	if path == "" {
		return empty, nil
	}
	if problem := writtenByOthers(path); problem != "" {
		return empty, errors.New("the store of approvals is not believed: " + problem + "; make it yours (chown, chmod go-w)")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty, nil
	case err != nil:
		return empty, errors.New("the store of approvals: " + fileErrorText(err))
	case !info.Mode().IsRegular():
		return empty, errors.New("the store of approvals is no regular file")
	case info.Size() > maxStore:
		return empty, errors.New("the store of approvals is too large")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return empty, errors.New("the store of approvals: " + fileErrorText(err))
	}
	return parseStore(b)
}

// updateStore applies f to the store as it is now: another process may have written it meanwhile.
func (a *Approvals) updateStore(f func(now *approvalStore)) error {
	now := approvalStore{}
	err := Edit(a.path, func([]byte) ([]byte, error) {
		var err error
		if now, err = readStore(a.path); err != nil {
			return nil, a.approveError(err.Error(), "mend or delete "+a.path, err)
		}
		if f(&now); now.Files == nil && now.Shown == nil {
			return nil, nil
		}
		text, err := json.MarshalIndent(now, "", "  ")
		return append(text, '\n'), err
	})
	var msgErr *messages.Error
	switch {
	case errors.As(err, &msgErr):
		return err
	case err != nil:
		return a.approveError("the approval cannot be written to "+a.path+": "+fileErrorText(err), "", err)
	}
	a.store = now
	return nil
}

// setEntry sets what stands under a file and a server.
func setEntry[V any](in *map[string]map[string]V, file, server string, v V) {
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

// deleteEntry takes out what stands under a file and a server.
func deleteEntry[V any](in map[string]map[string]V, file, server string) {
	delete(in[file], server)
	if len(in[file]) == 0 {
		delete(in, file)
	}
}
