package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// storedChanges is the form of the store: the changes that are not undone, by the path of the file.
type storedChanges struct {
	Version int                     `json:"version"`
	Files   map[string]storedChange `json:"files"`
}

// storedChange is what connect did to one file.
type storedChange struct {
	Program foreign.Format `json:"program"`
	// Path holds the keys that lead to the entry.
	Path []string `json:"path"`
	// Created says that there was no file before.
	Created bool   `json:"created"`
	Splice  splice `json:"splice"`
}

// storeFormat is the form of the store. Its number rises with every change of storedChanges.
var storeFormat = files.Format{What: "the list of connected clients", Oldest: 1, Newest: 1}

// maxStore bounds the store in bytes: a splice holds a little more than one entry.
const maxStore = 16 << 20

// storePath returns the file of the store; empty if there is no place for one.
func storePath() string {
	user := discover.DefaultPaths().User
	if user == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(user), "clients.json")
}

// readStore reads the store; a missing one is empty.
func readStore() (storedChanges, error) {
	empty := storedChanges{Version: storeFormat.Newest, Files: map[string]storedChange{}}
	file := storePath()
	if file == "" {
		return empty, nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty, nil
	case err == nil && (!info.Mode().IsRegular() || info.Size() > maxStore):
		return empty, storeError("it is no file of mcpvisor", "move it away")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return empty, storeError(files.PlainCause(err).Error(), "")
	}
	return parseStore(text)
}

// parseStore reads the content of a store.
func parseStore(text []byte) (storedChanges, error) {
	stored := storedChanges{}
	if _, err := storeFormat.Unmarshal(text, &stored); err != nil {
		return storedChanges{}, storeError(err.Error(), files.FixFor(err, storePath()))
	}
	if stored.Files == nil {
		stored.Files = map[string]storedChange{}
	}
	return stored, nil
}

// updateStore remembers the change of a file, or forgets it with nil. It must be called outside of an edit, which has the same
// lock.
func updateStore(file string, change *storedChange) error {
	if storePath() == "" {
		return storeError("there is no place for it", "set HOME")
	}
	err := discover.Edit(storePath(), func(old []byte) ([]byte, error) {
		stored := storedChanges{Version: storeFormat.Newest, Files: map[string]storedChange{}}
		if old != nil {
			var err error
			if stored, err = parseStore(old); err != nil {
				return nil, err
			}
		}
		if delete(stored.Files, file); change != nil {
			stored.Files[file] = *change
		}
		text, err := json.MarshalIndent(stored, "", "  ")
		return append(text, '\n'), err
	})
	var coded *exit.Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return storeError(files.PlainCause(err).Error(), "")
}

// storeError returns an error about the store.
func storeError(text, fix string) error {
	text = fmt.Sprintf("%s: %s", messages.Line(storePath(), 0), text)
	if fix != "" {
		text += "; " + fix
	}
	return exit.With(exit.Usage, text)
}
