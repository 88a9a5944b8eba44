// Package known holds the tables of failures that package failure recognises in what a program wrote before it ended: how the line
// of a failure looks, what it means in plain words, and what to do about it.
//
//	for _, table := range known.Tables {
//		for _, row := range table.Rows {
//			fmt.Println(row.Name, row.Fix)
//		}
//	}
//
// # How it fits
//
// Package failure reads the text, chooses the lines that a row may match, and compiles the patterns; its tests hold each row to a
// file of testdata. This package has the rows, one file for each family of programs, and does nothing by itself.
//
// # Guarantees
//
// A row names a reason only if a line of standard error has its pattern, and each row has a file of testdata with the words of a
// real program. A stranger's text gets into a reason only as a group of the pattern. A program that never fails costs no pattern:
// each is compiled at its first sign.
//
// # Not promised
//
// Completeness, and that the words of a program stay. A new version may use others; then a failure has no known reason, and the
// person reads the end of standard error instead.
package known

// Failure is one row: a failure, how its line is recognised, and what to say about it.
type Failure struct {
	// Name is unique for what a person can do about it: rows for other words of the same failure share it.
	Name string
	// Sign is in every line that Pattern matches, so that nearly every line is skipped at little cost. Its case counts.
	Sign string
	// Pattern recognises the line. It is compiled when a line first has the sign: a program that never fails pays nothing.
	Pattern string
	// Match replaces Pattern where a regular expression would be slow.
	Match func(line string) (groups []string)
	// Reason and Fix are clauses. {1} is the first group of the pattern in quotes, <1> without. An empty reason means that the
	// program's own words say it best.
	Reason, Fix string
	// Silent rows are about programs that still run: their lines are no reason to end.
	Silent bool
	// Alone rows apply only if no other line names a reason.
	Alone bool
}

// Table is the rows of one family of programs.
type Table struct {
	Rows []Failure
	// Near rows could be about a passing problem that a program reported before it ended for another reason, so they apply only
	// to lines next to the reason.
	Near bool
}

// Tables are all tables, in the order in which they are asked: rows that name their subject come before rows that could be about
// anything. The texts are those of the versions that testdata names.
var Tables = [...]Table{
	{npm, false}, {node, false}, {python, false}, {otherLanguages, false}, {containers, false}, {system, true}, {programs, true},
}

// IsWordRune reports whether a rune belongs to a word; U+FFFD, the sign of a broken character, does not.
func IsWordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > 0x7f && r != 0xfffd
}
