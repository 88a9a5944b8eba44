package discover

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// approvalStore is the JSON form of the file of approvals.
type approvalStore struct {
	Version int `json:"version"`
	// Files holds the approvals by the path of the file, as it was found, and server.
	Files map[string]map[string]approvalRecord `json:"files,omitempty"`
	// Shown holds the hashes of what the person was shown last, by file and server.
	Shown map[string]map[string]string `json:"shown,omitempty"`
}

// approvalRecord is one approval.
type approvalRecord struct {
	// Hash is that of the approved config.Binding. Variables and Sums are its lists, the latter with the SHA-256 of
	// each file.
	Hash      string            `json:"hash,omitempty"`
	Variables []string          `json:"variables,omitempty"`
	Sums      map[string]string `json:"files,omitempty"`
	// Own means that the person wrote the entry through mcpvisor.
	Own bool `json:"own,omitempty"`
	// Old means that an older version of mcpvisor approved the entry, by less than counts now. Such a record approves
	// nothing, and the reason for waiting mentions it.
	Old bool `json:"old,omitempty"`
}

// storeVersion is the form that is written. It rises with every change of approvalStore and of config.BindingVersion.
const storeVersion = 2

// maxStore bounds the store in bytes.
const maxStore = 16 << 20

// storeFormat reads version 1 too, which had only hashes.
var storeFormat = files.Format{What: "the store of approvals", Oldest: 1, Newest: storeVersion}

// parseStore reads the content of a store. Approvals of version 1 become Old records, so that the person learns why
// they do not count any more. A newer form is a [*files.NewerError], because overwriting it would lose approvals of a
// newer mcpvisor.
func parseStore(b []byte) (approvalStore, error) {
	empty := approvalStore{Version: storeVersion}
	version, err := storeFormat.VersionOf(b)
	if err != nil {
		return empty, err
	}
	if version == storeVersion {
		var s approvalStore
		if _, err := storeFormat.Unmarshal(b, &s); err != nil {
			return empty, err
		}
		return s, nil
	}
	var old struct {
		Version int                          `json:"version"`
		Files   map[string]map[string]string `json:"files"`
	}
	if _, err := storeFormat.Unmarshal(b, &old); err != nil {
		return empty, err
	}
	s := approvalStore{Version: storeVersion, Files: map[string]map[string]approvalRecord{}}
	for file, servers := range old.Files {
		s.Files[file] = map[string]approvalRecord{}
		for name := range servers {
			s.Files[file][name] = approvalRecord{Old: true}
		}
	}
	return s, nil
}

// readStore reads the store at path; a missing one is empty. A store that another user may write is an error, because
// that user could approve servers.
func readStore(path string) (approvalStore, error) {
	empty := approvalStore{Version: storeVersion}
	if path == "" {
		return empty, nil
	}
	if problem := WrittenByOthers(path); problem != "" {
		return empty, errors.New("the store of approvals is not believed: " + problem + "; make it yours (chown, chmod go-w)")
	}
	// The size is checked before the file is read into memory.
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

// updateStore applies f to the store as it is on disk now, which another process may have written since, and writes it.
// f may be called several times. A store that cannot be read is not overwritten.
func (a *Approvals) updateStore(f func(now *approvalStore)) error {
	now := approvalStore{}
	// readStore reads the file once more, with its checks; Edit notices a change between both readings.
	err := Edit(a.path, func([]byte) ([]byte, error) {
		var err error
		if now, err = readStore(a.path); err != nil {
			return nil, a.approveError(err.Error(), files.FixFor(err, a.path), err)
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
		return a.approveError("the approval cannot be written to "+a.path+": "+files.PlainCause(err).Error(), "", err)
	}
	// The value in memory changes only when the file has changed.
	a.store = now
	return nil
}

// setEntry sets the value under a file and a server. It clones the inner map, which a.store may share.
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

// deleteEntry removes the value under a file and a server, and the file's map when it becomes empty.
func deleteEntry[V any](in map[string]map[string]V, file, server string) {
	delete(in[file], server)
	if len(in[file]) == 0 {
		delete(in, file)
	}
}
