// Package report writes the findings of a run of the harness: a page for people, documents for programs, and the lines
// for a terminal.
//
//	err := report.Write(dir, report.Run{History: h, Verdicts: invariant.Judge(h), Command: replay})
//	report.Terminal(os.Stdout, run, color)
//
// # How it fits
//
// The command chaos calls Write and Terminal when a run has ended and package invariant has judged it. The package
// reads the history and the measurements of package load, and changes neither. It owns the folder that it writes, and
// no state between calls.
//
// # The folder
//
//	report.html     everything, for a browser: one file that loads nothing
//	report.json     the Document of this package
//	junit.xml       each check a test case, for systems that collect tests
//	history.jsonl   every event; see package history. "mcpvisor chaos report" judges it again
//	scenario.yaml   the scenario, and seed: both together replay the run
//	found.yaml      the larger day in which the violation was found, if this is the run of a smaller one
//
// # Guarantees
//
//   - A folder is complete or not there: it is written beside its place and renamed. The report of another run is not
//     replaced unless Run.Replace says so, and a folder that holds no report never is.
//   - No text of a server acts on a reader's terminal or browser: every text passes messages.Printable, and is escaped
//     for the form that it stands in. The page allows no script but its own, by its hash, and no access to any network.
//   - report.json, junit.xml and the terminal depend on the run alone: the same Run gives the same bytes.
//
// # Not promised
//
// The page of a long run with many servers does not hold every event: Cap bounds them for each server, the page says
// how many it leaves out, and history.jsonl has them all. The texts in history.jsonl are raw: they are data and not
// safe to print.
package report
