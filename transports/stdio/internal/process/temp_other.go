//go:build !unix

package process

import "os"

// lockDir has no lock to take here. Without a lock file removeStaleTemps removes nothing.
func lockDir(string) (*os.File, bool) { return nil, true }

// isOwnDir is false here, which keeps removeStaleTemps from every folder.
func isOwnDir(string) bool { return false }
