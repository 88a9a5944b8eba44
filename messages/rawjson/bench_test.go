package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// BenchmarkText skips, reads and writes a text of 64 KiB: plain, in lines as files are, and in another script. A copy of as many bytes
// is what there is to beat.
func BenchmarkText(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"plain", strings.Repeat("x", 64<<10)},
		{"lines", strings.Repeat("some \"words\" in a line, as files have\n", 64<<10/38)},
		{"cyrillic", strings.Repeat("строка ", 64<<10/13)},
	} {
		quoted, err := json.Marshal(c.text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/skip", func(b *testing.B) {
			for b.Loop() {
				if rawjson.SkipText(quoted, 0) != len(quoted) {
					b.Fatal("another end")
				}
			}
		})
		b.Run(c.name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if text, ok := rawjson.Text(quoted); !ok || len(text) != len(c.text) {
					b.Fatal("another text")
				}
			}
		})
		b.Run(c.name+"/write", func(b *testing.B) {
			to := make([]byte, 0, 2*len(quoted))
			for b.Loop() {
				if len(rawjson.AppendText(to, c.text)) < len(c.text) {
					b.Fatal("another text")
				}
			}
		})
		b.Run(c.name+"/copy", func(b *testing.B) {
			for b.Loop() {
				_ = string(quoted)
			}
		})
	}
}
