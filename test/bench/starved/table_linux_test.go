package starved_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is one measurement of one client.
type sample struct {
	Share, Servers int
	Client         string
	result
}

// keep appends a sample to the file, so that a measurement of hours that ends early is not lost.
func keep(file string, s sample) error {
	if file == "" {
		return nil
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// kept reads the samples of the file, none if there is no file.
func kept(file string) (all []sample, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); err == nil && lines.Scan(); {
		var s sample
		if err = json.Unmarshal(lines.Bytes(), &s); err == nil {
			all = append(all, s)
		}
	}
	return all, err
}

// tableOf is the table in Markdown: a line for each share, number of servers and client, medians.
func tableOf(all []sample, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Starting with a share of a processor

Written by `+"`make starved`"+`: servers of npm (server-sequential-thinking on Node) start in a control group with a quota of processor
time, and are connected when their tools are listed. Beside mcpvisor the clients of the Go SDK and of the TypeScript SDK (%s), with
timeouts of ten minutes, which connect all servers at once or eight at a time. The clients take turns; medians. Processor time is the
client's with its servers'. The last two columns are mcpvisor's time and processor time as a ratio to the best of the others.

| share of a processor | servers | client | runs | connected | seconds | processor seconds | time ÷ best | processor ÷ best |
|---:|---:|---|---:|---:|---:|---:|---:|---:|
`, version)
	type cell struct{ share, servers int }
	cells := map[cell]map[string][]result{}
	for _, s := range all {
		c := cell{s.Share, s.Servers}
		if cells[c] == nil {
			cells[c] = map[string][]result{}
		}
		cells[c][s.Client] = append(cells[c][s.Client], s.result)
	}
	var order []cell
	for c := range cells {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b cell) int { return cmp.Or(cmp.Compare(a.servers, b.servers), cmp.Compare(a.share, b.share)) })
	for _, c := range order {
		writeCell(&b, cells[c], fmt.Sprintf("| %d %% | %d |", c.share, c.servers))
	}
	return b.String()
}

func writeCell(b *strings.Builder, results map[string][]result, head string) {
	best := result{Took: 1 << 62, CPU: 1 << 62}
	most := 0
	for _, client := range clients[1:] {
		if r, ok := medianOf(results[client]); ok {
			most = max(most, r.Connected)
		}
	}
	for _, client := range clients[1:] { // who connected fewer is not the faster for it
		if r, ok := medianOf(results[client]); ok && r.Connected == most {
			best.Took, best.CPU = min(best.Took, r.Took), min(best.CPU, r.CPU)
		}
	}
	for _, client := range clients {
		r, ok := medianOf(results[client])
		if !ok {
			continue
		}
		fmt.Fprintf(b, "%s %s | %d | %d | %.1f | %.1f |", head, client, len(results[client]), r.Connected, r.Took.Seconds(), r.CPU.Seconds())
		if client == clients[0] && most > 0 {
			fmt.Fprintf(b, " %.2f | %.2f |\n", float64(r.Took)/float64(best.Took), float64(r.CPU)/float64(best.CPU))
		} else {
			b.WriteString(" | |\n")
		}
	}
}

// medianOf is the median of each figure by itself.
func medianOf(all []result) (r result, ok bool) {
	if len(all) == 0 {
		return r, false
	}
	middle := func(valueOf func(result) int64) int64 {
		var values []int64
		for _, r := range all {
			values = append(values, valueOf(r))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return result{
		Connected: int(middle(func(r result) int64 { return int64(r.Connected) })),
		Took:      time.Duration(middle(func(r result) int64 { return int64(r.Took) })),
		CPU:       time.Duration(middle(func(r result) int64 { return int64(r.CPU) })),
	}, true
}

func TestTable(t *testing.T) {
	var all []sample
	for i, took := range []time.Duration{9 * time.Second, 2 * time.Second, 3 * time.Second} {
		all = append(all,
			sample{50, 8, "mcpvisor", result{8, took, 6 * time.Second}},
			sample{50, 8, "go-sdk, all at once", result{8, 2 * time.Second, 5 * time.Second}},
			sample{50, 8, "typescript, 8 at a time", result{i + 1, time.Second, time.Second}})
	}
	text := tableOf(all, "1.0.0")
	for _, want := range []string{
		"| 50 % | 8 | mcpvisor | 3 | 8 | 3.0 | 6.0 | 1.50 | 1.20 |\n",
		"| 50 % | 8 | typescript, 8 at a time | 3 | 2 | 1.0 | 1.0 | | |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}
