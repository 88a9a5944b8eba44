package score

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A second, short process that is only asked for its era is no restart; whatever else is started is one.
func TestStarts(t *testing.T) {
	for name, c := range map[string]struct {
		record string // processes, each with what it was sent
		want   int
	}{
		"one process":                        {"1 started,1 initialize,1 tools/list", 1},
		"asked first":                        {"1 started,1 server/discover,2 started,2 initialize,2 tools/call", 1},
		"asked first, and modern":            {"1 started,1 server/discover,2 started,2 server/discover,2 tools/list", 1},
		"asked on the same connection":       {"1 started,1 server/discover,1 initialize", 1},
		"asked and left":                     {"1 started,1 server/discover", 1},
		"restarted":                          {"1 started,1 initialize,2 started,2 initialize", 2},
		"restarted, and asked again":         {"1 started,1 server/discover,2 started,2 initialize,3 started,3 server/discover,4 started,4 initialize", 2},
		"asked again and again":              {"1 started,1 server/discover,2 started,2 server/discover,3 started,3 server/discover", 3},
		"started in vain":                    {"1 started,2 started,3 started,3 initialize", 3},
		"asked while the other already runs": {"1 started,2 started,1 server/discover,2 initialize", 1},
		"never started":                      {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &testServer{records: filepath.Join(t.TempDir(), "r.jsonl")}
			var text strings.Builder
			for _, e := range strings.Split(c.record, ",") {
				if pid, method, ok := strings.Cut(e, " "); ok {
					text.WriteString(`{"at":1,"pid":` + pid + `,"method":"` + method + `"}` + "\n")
				}
			}
			if err := os.WriteFile(p.records, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := len((&caseRun{}).startTimes(p)); got != c.want {
				t.Errorf("%d starts, want %d", got, c.want)
			}
		})
	}
}
