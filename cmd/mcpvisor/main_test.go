package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// update makes the scripts write what they get in place of comparing it; the difference is reviewed as text.
var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// TestMain makes the test binary all programs of the scripts: mcpvisor itself, and the servers that it starts.
//
// A command starts this binary as its guardian, and connect starts it as the daemon. Without the first lines the
// guardian would run all tests, each of which starts another guardian.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == guardian.Command || os.Args[1] == client.Command) {
		main()
		return
	}
	testscript.Main(m, map[string]func(){
		"mcpvisor": main,
		"installs": installs,
		"fixture":  func() { servers.Main(os.Args[1:]) },
		"marks":    marks,
		"broken":   broken,
		"model":    model,
		"spy":      spy,
		"nasty":    nasty,
		"uvx":      uvx,
		"asks":     asks,
	})
}

// TestScripts runs the scripts of testdata/script: one file a story, each with a directory and a home of its own. Besides the
// commands of testscript there are:
//
//	exits CODE COMMAND…     the command ends with this very code
//	await COMMAND…          the command is repeated until it succeeds
//	shows REGEXP COMMAND…   the command is repeated until it succeeds with a line of its output that the pattern fits; with "or
//	                        fails" in front of the command until any of its runs has the line
//	within TIME COMMAND…    exits or await, and it must end in the time
//	steady FILE             what was written last to standard output, without what differs from run to run
//	running                 wait until a mcpvisor up of this directory answers, and has connected its servers
//	gone                    no process that was started by the script is left (Linux only, no opinion elsewhere)
//
// The condition [chaos] holds unless the tag nochaos has left the commands of chaos out.
//
// PRIVATE and PATIENT are the addresses of servers on this machine; see script_servers_test.go.
func TestScripts(t *testing.T) {
	vars := serveScripts(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Condition: func(cond string) (bool, error) {
			if cond != "chaos" {
				return false, fmt.Errorf("no condition is named %q", cond)
			}
			return fullBuild, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, vars...)
			// BOX is the instance that the person at the terminal has of a server named box.
			env.Vars = append(env.Vars, "BOX="+messages.InstanceName("box", audit.User()))
			return setUpScript(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": scriptExits, "await": scriptAwait, "shows": scriptShows, "within": scriptWithin, "steady": scriptSteady, "gone": scriptGone,
			"running": scriptRunning,
		},
	})
}

// setUpScript gives a script directories of its own for everything that mcpvisor reads and writes, so that scripts run in
// parallel and never touch the person's files.
func setUpScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	for _, dir := range []string{home, filepath.Join(env.WorkDir, "p")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	// The work directory is too deep for a socket.
	short, err := os.MkdirTemp("", "m")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(short) })
	env.Vars = append(env.Vars,
		"HOME="+home, "USERPROFILE="+home, "AppData="+home, "LocalAppData="+home,
		"XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_CACHE_HOME="+filepath.Join(home, "cache"),
		"XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_RUNTIME_DIR="+short,
		"GORACE=atexit_sleep_ms=0", // or each of hundreds of processes takes a second to end under the race detector
	)
	env.Vars = append(env.Vars, cargoHome())
	env.Vars = append(env.Vars, visible()...)
	env.Cd = filepath.Join(env.WorkDir, "p")
	return nil
}

// scriptExits implements exits.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// scriptAwait implements await, for at most a minute.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: await COMMAND…")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("it never succeeded: %v", err)
		}
	}
}

// scriptShows implements shows, for at most a minute. It is for what a command sees at its moment: the moment comes when the machine
// has got so far.
func scriptShows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: shows REGEXP [or fails] COMMAND…")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	command, mayFail := args[1:], false
	if len(command) > 2 && command[0] == "or" && command[1] == "fails" {
		command, mayFail = command[2:], true
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(command[0], command[1:]...)
		if (err == nil || mayFail) && pattern.MatchString(ts.ReadFile("stdout")+ts.ReadFile("stderr")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("it never showed %s: %v", args[0], err)
		}
	}
}

// scriptRunning implements running, for at most a minute.
func scriptRunning(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: running")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec("mcpvisor", "list")
		if err == nil && strings.Contains(ts.ReadFile("stderr"), "using the ") && ts.ReadFile("stdout") != "" {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no mcpvisor up answers: %v", err)
		}
	}
}

// scriptWithin implements within.
func scriptWithin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: within TIME COMMAND…")
	}
	bound, err := time.ParseDuration(args[0])
	ts.Check(err)
	start := time.Now()
	switch args[1] {
	case "exits":
		scriptExits(ts, false, args[2:])
	case "await":
		scriptAwait(ts, false, args[2:])
	default:
		ts.Fatalf("within knows exits and await")
	}
	if took := time.Since(start); took > bound {
		ts.Fatalf("it took %v, more than %v", took, bound)
	}
}

// unsteady lists the parts of an output that differ from run to run, and what replaces them.
var unsteady = []struct {
	pattern *regexp.Regexp
	becomes string
}{
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`), `"TIME"`},
	{regexp.MustCompile(`at \d\d:\d\d:\d\d`), `at TIME`},
	{regexp.MustCompile(`"(pid|attempts)": \d+`), `"$1": N`},
	{regexp.MustCompile(`\n *"epoch": \d+,`), ``},
}

// scriptSteady implements steady.
func scriptSteady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: steady FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile("stdout"), ts.Getenv("WORK"), "WORK")
	for _, u := range unsteady {
		text = u.pattern.ReplaceAllString(text, u.becomes)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// scriptGone implements gone. It finds the processes of a script by their home directory, which is the script's own.
func scriptGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: gone")
	}
	if runtime.GOOS != "linux" {
		return
	}
	mark := []byte("HOME=" + ts.Getenv("HOME") + "\x00")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		left := marked(mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still there: %s", strings.Join(left, "; "))
		}
	}
}

// marked returns the pids and command lines of the processes whose environment holds the mark, and of their guardians.
func marked(mark []byte) []string {
	var left []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, mark) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			left = append(left, filepath.Base(filepath.Dir(file))+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return append(left, guardians(left)...)
}

// guardians returns the guardians of the processes in the lines, found by their parent: a guardian has no environment that
// could hold a mark.
func guardians(lines []string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(guardian.Command)) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, fields[1]+" ") }) {
			found = append(found, filepath.Base(filepath.Dir(file))+" "+guardian.Command)
		}
	}
	return found
}

// visible returns the variables that let a test read the environment of the mcpvisor processes it starts; an ordinary user
// could not read it otherwise.
func visible() []string {
	if os.Getuid() == 0 {
		return nil
	}
	return []string{guardian.DumpableVariable + "=1"}
}
