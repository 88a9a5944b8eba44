package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The tools of a lazy server outlive the manager in one small file per server and spec, so that the next run can offer
// them before the server is dialled. A file that is missing, damaged or of another spec is as good as none.

type cachedTools struct {
	Tools       []messages.Tool            `json:"tools"`
	Quarantined []messages.QuarantinedTool `json:"quarantined,omitempty"`
}

func (c *Config) cacheFile(name string, spec *Spec) string {
	key, err := json.Marshal(spec.Redacted())
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(name+"\x00"), key...))
	return filepath.Join(c.CacheDir, "tools-"+hex.EncodeToString(sum[:12])+".json")
}

func (c *Config) recall(name string, spec *Spec) *session.ToolList {
	if c.CacheDir == "" {
		return nil
	}
	data, err := os.ReadFile(c.cacheFile(name, spec))
	if err != nil {
		return nil
	}
	var cached cachedTools
	if json.Unmarshal(data, &cached) != nil {
		return nil
	}
	for i := range cached.Tools {
		cached.Tools[i].Server = name
	}
	return &session.ToolList{Tools: cached.Tools, Quarantined: cached.Quarantined}
}

// remember writes in the background: it is called from an actor's turn, and a list that could not be kept is only a
// slower start of the next run.
func (c *Config) remember(name string, spec *Spec, list *session.ToolList) {
	data, err := json.Marshal(cachedTools{Tools: list.Tools, Quarantined: list.Quarantined})
	if err != nil {
		return
	}
	file := c.cacheFile(name, spec)
	go func() {
		if err := os.MkdirAll(c.CacheDir, 0o700); err != nil {
			return
		}
		tmp, err := os.CreateTemp(c.CacheDir, "tools-*.tmp")
		if err != nil {
			return
		}
		_, werr := tmp.Write(data)
		cerr := tmp.Close()
		if werr != nil || cerr != nil || os.Rename(tmp.Name(), file) != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
}
