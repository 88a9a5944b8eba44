package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheLibraryPageShowsWhatRuns: each row of "How do I" names an Example that the tests run and compare with its output, or a Test. The
// first thing that the row says to use is used in the file of that Example.
func TestTheLibraryPageShowsWhatRuns(t *testing.T) {
	page, err := os.ReadFile("help/library.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\|.*\\| (.*) \\| `([a-z/]+)\\.((?:Example|Test)\\w*)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 20 {
		t.Errorf("%d rows", len(rows))
	}
	first := regexp.MustCompile("`(?:[a-z]+\\.)?(?:Config\\.|Error\\.)?([A-Z]\\w+)")
	for _, row := range rows {
		folder, name := row[2], row[3]
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		body, whole := "", ""
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, after, found := strings.Cut(string(source), "\nfunc "+name+"("); found {
				body, _, _ = strings.Cut(after, "\n}\n")
				whole = string(source)
			}
		}
		if body == "" || strings.HasPrefix(name, "Example") && !strings.Contains(body, "// Output:") {
			t.Errorf("%s.%s does not run", folder, name)
		}
		if used := first.FindStringSubmatch(row[1]); used != nil && !regexp.MustCompile(`\b`+used[1]+`\b`).MatchString(whole) {
			t.Errorf("%s.%s does not use %s", folder, name, used[1])
		}
	}
}

// TestTheLoopOfTheLibraryPageRuns: the page and the documentation of MayRetry show the loop that ExampleError_MayRetry_loop runs.
func TestTheLoopOfTheLibraryPageRuns(t *testing.T) {
	// loopOf returns the first loop of a file that asks MayRetry, without comments, spaces and the names of the call's arguments.
	loopOf := func(name string) string {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`(?m)^//\t`).ReplaceAllString(string(source), "")
		text = regexp.MustCompile(`(?m)\s*//.*$`).ReplaceAllString(text, "")
		loop := regexp.MustCompile(`(?s)for \{\s*out, err := m\.CallTool.*?ctx\.Done\(\):\s*\}\s*\}`).FindString(text)
		return regexp.MustCompile(`\s+`).ReplaceAllString(strings.ReplaceAll(loop, "(ctx, name, args)", "(ctx, tool, args)"), " ")
	}
	runs := loopOf("../../supervisor/example_again_test.go")
	if !strings.Contains(runs, "MayRetry()") || !strings.Contains(runs, "case <-ctx.Done():") {
		t.Fatalf("the Example's loop: %q", runs)
	}
	for _, name := range []string{"help/library.md", "../../messages/may_retry.go"} {
		if got := loopOf(name); got != runs {
			t.Errorf("%s shows\n%s\nand the Example runs\n%s", name, got, runs)
		}
	}
}
