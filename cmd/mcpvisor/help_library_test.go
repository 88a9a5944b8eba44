package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheLibraryPageShowsWhatRuns: each row of "How do I" names an Example that the tests run and compare with its output, or a Test.
func TestTheLibraryPageShowsWhatRuns(t *testing.T) {
	page, err := os.ReadFile("help/library.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\|.*\\| `([a-z/]+)\\.((?:Example|Test)\\w+)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 20 {
		t.Errorf("%d rows", len(rows))
	}
	for _, row := range rows {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(row[1]), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		body := ""
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, after, found := strings.Cut(string(source), "\nfunc "+row[2]+"("); found {
				body, _, _ = strings.Cut(after, "\n}\n")
			}
		}
		if body == "" || strings.HasPrefix(row[2], "Example") && !strings.Contains(body, "// Output:") {
			t.Errorf("%s.%s does not run", row[1], row[2])
		}
	}
}
