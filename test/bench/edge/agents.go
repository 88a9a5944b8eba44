package edge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// agents is how many use the machine at once.
const agents = 50

// initializeParams are those of an agent's first request.
const initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// An agent is one mcpvisor connect, as the configuration of an agent starts it.
type agent struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startAgent starts a bridge in a home.
func startAgent(ctx context.Context, program, home string) (*agent, error) {
	a := &agent{cmd: exec.CommandContext(ctx, program, "connect")}
	a.cmd.Dir, a.cmd.Env = home, homeOf(home)
	var err error
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.out = bufio.NewReader(out)
	return a, a.cmd.Start()
}

func homeOf(home string) []string {
	return append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home+"/config", "XDG_CACHE_HOME="+home+"/cache", "XDG_STATE_HOME="+home+"/state",
		"XDG_RUNTIME_DIR="+home)
}

// ask sends a request and returns its answer.
func (a *agent) ask(id int, method, params string) (string, error) {
	if _, err := fmt.Fprintf(a.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		return "", err
	}
	for {
		line, err := a.out.ReadString('\n')
		if err != nil {
			return "", err
		}
		if strings.Contains(line, fmt.Sprintf(`"id":%d`, id)) {
			return line, nil
		}
	}
}

// open begins the session, and lists until the tools are there; list is the time of the list, and first that from the start.
func (a *agent) open(began time.Time) (list, first time.Duration, err error) {
	if _, err = a.ask(1, "initialize", initializeParams); err != nil {
		return 0, 0, err
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		asked := time.Now()
		text, err := a.ask(2, "tools/list", "{}")
		if err != nil {
			return 0, 0, err
		}
		if strings.Contains(text, `"one__echo"`) {
			return time.Since(asked), time.Since(began), nil
		}
		if time.Now().After(deadline) {
			return 0, 0, errors.New("the tools do not come: " + text)
		}
		time.Sleep(time.Millisecond)
	}
}

// goodServer returns a configuration with one server.
func goodServer() string {
	command, args := servers.Command("good")
	return fmt.Sprintf(`{"mcpServers":{"one":{"command":%q,"args":["%s"]}}}`, command, strings.Join(args, `","`))
}

// newHome makes a home with the servers of a person, where no daemon runs and nothing is remembered. leave ends the daemon that runs by then.
func newHome(ctx context.Context, program, config string) (home string, leave func() error, err error) {
	if home, err = os.MkdirTemp("", "e"); err != nil { // a socket stands in it, whose path is short
		return "", nil, err
	}
	file := filepath.Join(home, "config", "mcpvisor", "mcp.json")
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		err = os.WriteFile(file, []byte(config), 0o600)
	}
	return home, func() error {
		defer os.RemoveAll(home)
		down := exec.CommandContext(context.WithoutCancel(ctx), program, "down")
		down.Env = homeOf(home)
		if out, err := down.CombinedOutput(); err != nil {
			return fmt.Errorf("down: %w\n%s", err, out)
		}
		return nil
	}, err
}

// runAgents starts the agents one after the other; the first one starts the daemon.
func runAgents(ctx context.Context, o row.Options) (report row.Report, err error) {
	o.Progress("agents: building mcpvisor")
	program := filepath.Join(o.Dir, "mcpvisor-agents")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/mcpvisor/mcpvisor/cmd/mcpvisor").CombinedOutput(); err != nil {
		return report, fmt.Errorf("building mcpvisor: %w\n%s", err, out)
	}
	o.Progress("agents: without a daemon")
	cold, err := measureCold(ctx, program)
	if err != nil {
		return report, err
	}
	o.Progress("agents: %d of them", agents)
	home, leave, err := newHome(ctx, program, goodServer())
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	var lists, firsts, bridges []float64
	for i := range agents {
		began := time.Now()
		a, err := startAgent(ctx, program, home)
		if err != nil {
			return report, err
		}
		defer func() {
			_ = a.in.Close()
			_ = a.cmd.Wait()
		}()
		list, first, err := a.open(began)
		if err != nil {
			return report, err
		}
		if i > 0 { // the first one starts the daemon
			lists, firsts = append(lists, float64(list)/1e6), append(firsts, float64(first)/1e6)
		}
		if kb := privateMemory(a.cmd.Process.Pid); kb > 0 {
			bridges = append(bridges, float64(kb)/1024)
		}
	}
	processes := countProcesses(home)
	o.Progress("agents: %d of them lose their daemon", agents)
	lost, err := measureGaps(ctx, program)
	if err != nil {
		return report, err
	}
	version := time.Now()
	if err := exec.CommandContext(ctx, program, "version").Run(); err != nil {
		return report, err
	}
	took := float64(time.Since(version)) / 1e6
	report.Rows = []row.Row{
		{Case: "agents: a list, daemon warm", Unit: "ms", Value: middle(lists), Target: 20},
		{Case: "agents: from exec to the list", Unit: "ms", Value: middle(firsts), Target: took + 20},
	}
	report.Rows = append(append(report.Rows, cold...), lost...)
	if processes > 0 {
		report.Rows = append(report.Rows, row.Row{Case: "agents: processes of the one server", Unit: "processes", Value: float64(processes), Target: 1})
	}
	if len(bridges) > 0 {
		report.Rows = append(report.Rows, row.Row{Case: "agents: a bridge, the largest", Unit: "MB", Value: slices.Max(bridges), Target: 12})
	}
	for _, r := range report.Rows {
		report.Text += fmt.Sprintf("%s: %.3g %s\n", r.Case, r.Value, r.Unit)
	}
	return report, nil
}

// privateMemory returns the kilobytes that a process shares with no other, 0 where the system does not say it.
func privateMemory(pid int) (kb int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var n int
		if name, rest, _ := strings.Cut(line, ":"); name == "Private_Clean" || name == "Private_Dirty" {
			if _, err := fmt.Sscan(rest, &n); err == nil {
				kb += n
			}
		}
	}
	return kb
}

// countProcesses returns how many processes with the home are the server, 0 where the system does not say it.
func countProcesses(home string) (n int) {
	folders, _ := filepath.Glob("/proc/[0-9]*") // elsewhere there is none
	for _, folder := range folders {
		line, _ := os.ReadFile(folder + "/cmdline") // a process that has ended has none
		env, _ := os.ReadFile(folder + "/environ")
		if strings.Contains(string(line), servers.Marker+"\x00good") && strings.Contains(string(env), "HOME="+home+"\x00") {
			n++
		}
	}
	return n
}
