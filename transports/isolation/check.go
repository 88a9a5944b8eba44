package isolation

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The least values of limits. With less no program starts, and the error would not name the limit.
const (
	LeastMemory = 16 << 20
	LeastFiles  = 16
	leastCPU    = time.Second
)

// Problem is a fault of an Isolation on any machine. Key is that of the configuration: "write[1]".
type Problem struct{ Key, Text, Fix string }

// Check finds the values that are wrong on every machine. It also checks values that the reader of configurations would refuse,
// because an Isolation may come from a program or a message as well.
func Check(i *messages.Isolation) (problems []Problem) {
	if i == nil {
		return nil
	}
	add := func(key, text, fix string) { problems = append(problems, Problem{key, text, fix}) }
	for _, l := range []struct {
		key   string
		paths []string
	}{{"write", i.Write}, {"read", i.Read}} {
		for n, path := range l.paths {
			key := fmt.Sprintf("%s[%d]", l.key, n)
			switch {
			case path == "":
				add(key, "it is empty", "name a file or a folder")
			case strings.Contains(path, "\x00"):
				add(key, "it holds a NUL character", "remove it")
			case path == "~" || strings.HasPrefix(path, "~/"):
				add(key, "~ is not replaced here", "write ${HOME}"+path[1:])
			}
		}
	}
	switch i.Network {
	case "", messages.NetworkNone, messages.NetworkLoopback:
	default:
		add("network", "it is unknown", `write false for none, or "loopback"`)
	}
	least := func(key string, value, least int64, text string) {
		if value != 0 && value < least {
			add(key, "it must be at least "+text+", or no server starts", "write more, or leave it out")
		}
	}
	least("memory", int64(i.Memory), LeastMemory, messages.Size(LeastMemory).String())
	least("fileSize", int64(i.FileSize), 1, "1B")
	least("files", int64(i.Files), LeastFiles, fmt.Sprint(LeastFiles))
	least("cpuTime", int64(i.CPUTime), int64(leastCPU), leastCPU.String())
	return problems
}
