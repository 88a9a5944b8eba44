package reach

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the path that every file of a profile begins with.
const Module = "github.com/mcpvisor/mcpvisor/"

// A Profile holds the statements that were run, by file.
type Profile map[string][]Block

// Block is some statements that are run together, or not at all.
type Block struct {
	From, To   int // lines
	Statements int
	Run        bool // at least once, in any of the runs that the profile is of
}

// A Share counts the statements of a file or a package, and those that were run.
type Share struct {
	Name            string
	Run, Statements int
}

// Percent returns the share that was run, in per cent; 0 without statements.
func (s Share) Percent() float64 { return 100 * float64(s.Run) / float64(max(s.Statements, 1)) }

// Read reads a profile in the text form, in which each line is "file:line.column,line.column statements count". A block that
// stands there several times was run if one of them was.
func Read(r io.Reader) (Profile, error) {
	blocks := map[string]map[string]Block{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text := lines.Text()
		if strings.HasPrefix(text, "mode:") {
			continue
		}
		fields := strings.Fields(text)
		file, position, ok := strings.Cut(fields[0], ":")
		if !ok || len(fields) != 3 {
			return nil, fmt.Errorf("a line of the profile cannot be read: %q", text)
		}
		// Columns are read past: two blocks of one line differ in them, and position as a whole is the key below.
		var b Block
		var columns [2]int
		if _, err := fmt.Sscanf(position, "%d.%d,%d.%d", &b.From, &columns[0], &b.To, &columns[1]); err != nil {
			return nil, fmt.Errorf("a place of the profile cannot be read: %q: %w", text, err)
		}
		b.Statements, _ = strconv.Atoi(fields[1])
		file = strings.TrimPrefix(file, Module)
		if blocks[file] == nil {
			blocks[file] = map[string]Block{}
		}
		b.Run = fields[2] != "0" || blocks[file][position].Run
		blocks[file][position] = b
	}
	p := Profile{}
	for file, blocksByPlace := range blocks {
		p[file] = slices.SortedFunc(maps.Values(blocksByPlace), func(a, b Block) int {
			if a.From != b.From {
				return a.From - b.From
			}
			return a.To - b.To
		})
	}
	return p, lines.Err()
}

// FileShare returns the share of one file.
func (p Profile) FileShare(file string) Share {
	s := Share{Name: file}
	for _, b := range p[file] {
		if s.Statements += b.Statements; b.Run {
			s.Run += b.Statements
		}
	}
	return s
}

// Files are the files, sorted.
func (p Profile) Files() []string { return slices.Sorted(maps.Keys(p)) }

// Packages returns the share of each package, sorted by name. Only files that within says yes to count; nil is all.
func (p Profile) Packages(within func(file string) bool) []Share {
	shares := map[string]Share{}
	for _, file := range p.Files() {
		if within != nil && !within(file) {
			continue
		}
		name, one := path.Dir(file), p.FileShare(file)
		shares[name] = Share{Name: name, Run: shares[name].Run + one.Run, Statements: shares[name].Statements + one.Statements}
	}
	all := slices.Collect(maps.Values(shares))
	slices.SortFunc(all, func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Total is the sum of some shares.
func Total(shares []Share) (sum Share) {
	for _, s := range shares {
		sum.Run, sum.Statements = sum.Run+s.Run, sum.Statements+s.Statements
	}
	return sum
}

// MissedLines are the lines of a file that were not run, "12-14, 20", and how many statements stand there.
func (p Profile) MissedLines(file string) (lines string, statements int) {
	from, to := 0, 0
	var all []string
	add := func() {
		switch {
		case from == 0:
		case from == to:
			all = append(all, strconv.Itoa(from))
		default:
			all = append(all, fmt.Sprintf("%d-%d", from, to))
		}
	}
	for _, b := range p[file] {
		if b.Run || b.Statements == 0 {
			continue
		}
		statements += b.Statements
		if from > 0 && b.From <= to+1 {
			to = max(to, b.To)
			continue
		}
		add()
		from, to = b.From, b.To
	}
	add()
	return strings.Join(all, ", "), statements
}
