package ask

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Flags holds the persistent flags about what servers may ask of the person, and the values that ReadValues makes of them.
type Flags struct {
	// answers is the path of the file of preset answers.
	answers   string
	noBrowser bool
	// sampling is a command line; yes runs it without a question.
	sampling string
	yes      bool
	// roots are directories as the person typed them.
	roots []string

	// samplingWords are the words of sampling, rootList the directories of roots. Both are set by ReadValues.
	samplingWords []string
	rootList      []messages.Root
}

// AddTo adds the flags to the persistent ones of the program.
func (a *Flags) AddTo(f *pflag.FlagSet) {
	f.StringVar(&a.answers, "answers", "", "answer the questions of servers from this JSON `file`: "+
		`{"SERVER": {"FIELD": value}}`)
	f.BoolVar(&a.noBrowser, "no-browser", false, "open no page that a server asks to be opened: only show its URL")
	f.StringVar(&a.sampling, "sampling-command", "",
		"let this `program` answer servers that ask for the model: params on its input, result on its output")
	f.BoolVar(&a.yes, "yes", false, "do not ask before a server uses the sampling command")
	f.StringArrayVar(&a.roots, "root", nil, "tell servers that they may work in this `directory` (repeatable)")
}

// AnswersGiven reports whether there are preset answers, which are this process's own.
func (a *Flags) AnswersGiven() bool { return a.answers != "" }

// ManagerFlag returns the name of a given flag that concerns only the process that starts the servers; "" if none is given.
// With a running up such a flag has no effect, and project.Open says so.
func (a *Flags) ManagerFlag() string {
	switch {
	case a.sampling != "":
		return "--sampling-command"
	case len(a.roots) > 0:
		return "--root"
	}
	return ""
}

// ReadValues parses the values of the flags, and gives the prompter its preset answers. It runs after --dir has changed the
// directory. Every error is a usage error.
func (a *Flags) ReadValues(d *Prompter) error {
	if a.sampling != "" {
		words, err := config.Words(a.sampling)
		if err != nil || len(words) == 0 {
			return exit.With(exit.Usage, "--sampling-command: it names no program that could be run; "+
				"write --sampling-command 'PROGRAM ARGUMENT…'")
		}
		a.samplingWords = words
	}
	for _, dir := range a.roots {
		root, err := rootOf(dir)
		if err != nil {
			return err
		}
		a.rootList = append(a.rootList, root)
	}
	if a.answers != "" {
		answers, err := readAnswers(a.answers)
		if err != nil {
			return err
		}
		d.answers = answers
	}
	d.browser = !a.noBrowser
	return nil
}

// rootOf returns a directory as a root with a file: URI. The directory must exist, because a server would fail later and with a
// worse message.
func rootOf(dir string) (messages.Root, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(abs); err == nil && !info.IsDir() {
			return messages.Root{}, exit.With(exit.Usage, fmt.Sprintf("--root: %q is no directory", messages.Line(dir, 200)))
		}
	}
	if err != nil {
		return messages.Root{}, exit.With(exit.Usage, fmt.Sprintf("--root: %q: there is no such directory",
			messages.Line(dir, 200)))
	}
	path := filepath.ToSlash(abs)
	if !strings.HasPrefix(path, "/") { // Windows: C:/dir becomes /C:/dir in a URL
		path = "/" + path
	}
	return messages.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(abs)}, nil
}
