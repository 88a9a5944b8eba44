package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// doctorRun holds what the checks of doctor look at. Checks read files and variables, ask programs for their version, and dial
// proxies and those servers of the configuration that are on this machine.
type doctorRun struct {
	options *cli.Options
	setup   *project.Setup
	// users holds the names of the enabled servers by the program that starts them.
	users map[string][]string
}

// newDoctorRun collects the programs of the enabled servers; disabled servers need nothing.
func newDoctorRun(o *cli.Options, s *project.Setup) *doctorRun {
	e := &doctorRun{options: o, setup: s, users: map[string][]string{}}
	for _, name := range s.ServerNames() {
		if spec := s.Specs[name]; !spec.Disabled && spec.Command != "" {
			program := programName(spec.Command)
			e.users[program] = append(e.users[program], name)
		}
	}
	return e
}

// programName returns a command without its directory and without the ending of programs on Windows.
func programName(command string) string {
	name := filepath.Base(command)
	if runtime.GOOS == "windows" {
		name = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd"))
	}
	return name
}

// allChecks returns the checks in the order of the report.
func (e *doctorRun) allChecks() []func(context.Context) []finding {
	return []func(context.Context) []finding{
		e.checkConfig, e.checkPrograms, e.checkNpxCache, e.checkDocker, e.checkProxies, e.checkCertificates, e.checkKeyring, e.checkTempDir, e.checkPorts, e.checkRunning,
	}
}

// serversNamed lists servers for a sentence: "server a", "servers a, b".
func serversNamed(names []string) string {
	if len(names) == 1 {
		return "server " + messages.Line(names[0], 60)
	}
	return "servers " + terminal.JoinNames(names)
}

// checkConfig counts the faults of the files, and names the servers that wait for an approval: they cannot start either.
func (e *doctorRun) checkConfig(context.Context) (out []finding) {
	faults := 0
	for _, p := range e.setup.Problems {
		if !p.Warning {
			faults++
		}
	}
	switch text := e.setup.NoServersText(); {
	case faults > 0:
		out = append(out, finding{"configuration", checkFault, terminal.CountOf(faults, "fault") + " in the files", "see each with its place: mcpvisor config check"})
	case text != "":
		out = append(out, finding{"configuration", checkNote, text, strings.TrimPrefix(project.AddServerHint, "; ")})
	default:
		out = append(out, finding{"configuration", checkOK, terminal.CountOf(len(e.setup.Specs), "server") + " in " + terminal.CountOf(len(e.setup.Files), "file"), ""})
	}
	if waiting := slices.Sorted(maps.Keys(e.setup.Waiting)); len(waiting) > 0 {
		wait := "waits"
		if len(waiting) > 1 {
			wait = "wait"
		}
		out = append(out, finding{"approvals", checkFault, serversNamed(waiting) + " of this project " + wait + " for your approval",
			"look at them and approve them: mcpvisor approve"})
	}
	return out
}

// launchers lists the programs that start most servers, where to get them, and the option that prints their version.
var launchers = []struct{ name, from, option string }{
	{"node", "install Node.js, or Node's version manager of your choice", "--version"},
	{"npx", "it comes with Node.js", "--version"},
	{"uvx", "install uv", "--version"},
	{"docker", "install Docker, or Podman under that name", "--version"},
}

// checkPrograms looks for the programs that servers of the project are started with, and for the usual launchers. An entry with
// a PATH of its own or a whole path is not counted, because its program need not be in our PATH.
func (e *doctorRun) checkPrograms(ctx context.Context) (out []finding) {
	names := slices.Sorted(maps.Keys(e.users))
	for _, l := range launchers {
		if !slices.Contains(names, l.name) {
			names = append(names, l.name)
		}
	}
	for _, name := range names {
		users := slices.DeleteFunc(slices.Clone(e.users[name]), func(server string) bool {
			spec := e.setup.Specs[server]
			return spec.Env["PATH"] != "" || strings.ContainsAny(spec.Command, `/\`)
		})
		i := slices.IndexFunc(launchers, func(l struct{ name, from, option string }) bool { return l.name == name })
		path, err := exec.LookPath(name)
		switch {
		case err != nil && len(users) > 0:
			from := "install it, or write its whole path into the entry"
			if i >= 0 {
				from = launchers[i].from
			}
			out = append(out, finding{name, checkFault, "not found in PATH; " + serversNamed(users) + " cannot start", from})
		case err != nil && i >= 0:
			out = append(out, finding{name, checkNote, "not found in PATH; no server here needs it", ""})
		case err != nil:
			// The program is started by its path, or with a PATH of its own.
		case i >= 0:
			out = append(out, versionOf(ctx, name, path, launchers[i].option, len(users) > 0))
		default:
			out = append(out, finding{name, checkOK, path, ""})
		}
	}
	return out
}

// minNodeVersion is the least major version of Node.js that current servers work with.
const minNodeVersion = 18

// versionOf runs a program with its version option. A program that is there but does not run is a fault if a server needs it,
// and a note otherwise.
func versionOf(ctx context.Context, name, path, option string, needed bool) finding {
	said, err := stdio.Output(ctx, stdio.Config{Command: path, Args: []string{option}, Env: os.Environ()}, 4096)
	version, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if err != nil || version == "" {
		verdict := checkNote
		if needed {
			verdict = checkFault
		}
		return finding{name, verdict, path + " is there, and does not run: " + errorLine(err), "start it by hand: " + terminal.ShellWord(path) + " " + option}
	}
	major := 0
	if _, err := fmt.Sscanf(version, "v%d.", &major); name == "node" && err == nil && major < minNodeVersion {
		return finding{name, checkNote, fmt.Sprintf("%s at %s is older than most servers need (%d)", version, path, minNodeVersion), "update Node.js"}
	}
	return finding{name, checkOK, messages.Line(version, 80) + " at " + path, ""}
}

// errorLine returns an error on one line for a finding; nil means that a program printed nothing.
func errorLine(err error) string {
	if err == nil {
		return "it printed nothing"
	}
	return messages.Line(err.Error(), 200)
}

// checkNpxCache looks for folders that an interrupted installation has left: npx takes such a folder for an installed package
// and fails in it every time, until the folder is removed.
func (e *doctorRun) checkNpxCache(context.Context) []finding {
	// The order is that of npm: its variables, then its default directory.
	dir := cmp.Or(os.Getenv("npm_config_cache"), os.Getenv("NPM_CONFIG_CACHE"))
	if home, err := os.UserHomeDir(); dir == "" && err == nil {
		dir = filepath.Join(home, ".npm")
		if runtime.GOOS == "windows" {
			dir = filepath.Join(os.Getenv("LocalAppData"), "npm-cache")
		}
	}
	packages, err := os.ReadDir(filepath.Join(dir, "_npx"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // npx was never used
	case err != nil:
		return []finding{{"npx cache", checkFault, errorLine(err), "npm must be able to read and write " + dir}}
	}
	var broken []string
	for _, p := range packages {
		folder := filepath.Join(dir, "_npx", p.Name())
		// A complete installation has a package.json beside node_modules.
		if _, err := os.Stat(filepath.Join(folder, "package.json")); p.IsDir() && errors.Is(err, os.ErrNotExist) {
			broken = append(broken, folder)
		}
	}
	if len(broken) == 0 {
		return []finding{{"npx cache", checkOK, terminal.CountOf(len(packages), "package") + " in " + filepath.Join(dir, "_npx"), ""}}
	}
	verdict := checkNote
	if len(e.users["npx"]) > 0 {
		verdict = checkFault
	}
	words := make([]string, len(broken))
	for i, folder := range broken {
		words[i] = terminal.ShellWord(folder)
	}
	return []finding{{"npx cache", verdict, "an installation was interrupted, and what it was for fails until its folder is gone",
		"while no npx runs, remove: " + strings.Join(words, " ")}}
}

// checkDocker asks the Docker daemon for its version, since the program alone cannot start a container.
func (e *doctorRun) checkDocker(ctx context.Context) []finding {
	// Without a server that needs it the daemon is not asked: a first question may start it.
	users := e.users["docker"]
	path, err := exec.LookPath("docker")
	if err != nil || len(users) == 0 {
		return nil
	}
	said, err := stdio.Output(ctx, stdio.Config{Command: path, Args: []string{"version", "--format", "{{.Server.Version}}"},
		Env: os.Environ()}, 4096)
	if err != nil {
		return []finding{{"docker daemon", checkFault, "it does not answer; " + serversNamed(users) + " cannot start",
			"start Docker, or see why: docker version"}}
	}
	return []finding{{"docker daemon", checkOK, messages.Line(string(said), 60), ""}}
}

// checkProxies dials the proxies that the variables name: with a wrong one no server on the internet can be reached.
func (e *doctorRun) checkProxies(ctx context.Context) (out []finding) {
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"} {
		value := cmp.Or(os.Getenv(name), os.Getenv(strings.ToLower(name)))
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		// Programs also accept HOST:PORT without a scheme.
		if err == nil && u.Host == "" {
			u, err = url.Parse("http://" + value)
		}
		if err != nil || u.Hostname() == "" {
			out = append(out, finding{name, checkFault, "it holds no address of a proxy", "write it as http://HOST:PORT"})
			continue
		}
		port := cmp.Or(u.Port(), map[string]string{"https": "443", "socks5": "1080"}[u.Scheme], "80")
		host := net.JoinHostPort(u.Hostname(), port) // without the user and password that may stand before the host
		// Only the connection is tried: a request would need the password, and would reach another machine.
		if err := dialTCP(ctx, host); err != nil {
			out = append(out, finding{name, checkFault, "the proxy at " + host + " cannot be reached", "correct the variable, or unset it"})
			continue
		}
		out = append(out, finding{name, checkOK, "a proxy listens at " + host, ""})
	}
	return out
}

// dialTCP reports whether something accepts connections at the address, and sends nothing.
func dialTCP(ctx context.Context, address string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		c.Close()
	}
	return err
}

// checkCertificates reads the files that replace or extend the trusted authorities, since with a wrong one every TLS connection
// of the program that uses the variable fails.
func (e *doctorRun) checkCertificates(context.Context) (out []finding) {
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"} {
		path := os.Getenv(name)
		if path == "" {
			continue
		}
		// Whether the certificates are the right ones, only a connection shows; a file without any is wrong in each case.
		text, err := os.ReadFile(path)
		switch {
		case err != nil:
			out = append(out, finding{name, checkFault, errorLine(err), "correct the variable, or unset it"})
		case !strings.Contains(string(text), "-----BEGIN "):
			out = append(out, finding{name, checkFault, path + " holds no certificate in PEM form", "correct the variable, or unset it"})
		default:
			out = append(out, finding{name, checkOK, path, ""})
		}
	}
	return out
}

// checkKeyring says where sign-ins are kept: in the keyring of the system, or in encrypted files. Both work, so that it never
// finds a fault.
func (e *doctorRun) checkKeyring(ctx context.Context) []finding {
	opts, err := supervisor.DefaultAuthOptions()
	if err != nil {
		return []finding{{"sign-ins", checkNote, "there is no place for them: " + errorLine(err), "set HOME"}}
	}
	if _, err := auth.OpenKeyring(ctx, opts); err != nil {
		return []finding{{"sign-ins", checkNote, "this system has no keyring that answers: they are kept in encrypted files in " + opts.Dir, ""}}
	}
	return []finding{{"sign-ins", checkOK, "kept in the system's keyring", ""}}
}

// checkTempDir tries to write 64 KiB where servers and their installers write.
func (e *doctorRun) checkTempDir(context.Context) []finding {
	// A full disk lets an empty file be made, so that bytes are written as well.
	f, err := os.CreateTemp("", "mcpvisor-doctor-*")
	if err != nil {
		return []finding{{"temporary files", checkFault, errorLine(err), "make room, or set TMPDIR to a directory that can be written"}}
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, 64<<10)); err != nil {
		return []finding{{"temporary files", checkFault, errorLine(err), "make room in " + os.TempDir()}}
	}
	return []finding{{"temporary files", checkOK, os.TempDir() + " can be written", ""}}
}

// checkPorts dials the servers on this machine. It finds only that nothing listens; whether a listener is an MCP server is for
// the command list to say. Servers elsewhere are not dialled.
func (e *doctorRun) checkPorts(ctx context.Context) (out []finding) {
	for _, name := range e.setup.ServerNames() {
		spec := e.setup.Specs[name]
		u, err := url.Parse(spec.URL)
		if spec.Disabled || spec.URL == "" || err != nil || !isLoopback(u.Hostname()) {
			continue
		}
		port := cmp.Or(u.Port(), map[string]string{"https": "443", "wss": "443"}[u.Scheme], "80")
		host := net.JoinHostPort(u.Hostname(), port)
		if err := dialTCP(ctx, host); err != nil {
			out = append(out, finding{"server " + messages.Line(name, 60), checkFault, "nothing listens at " + host,
				"start that server, or correct the port in its entry"})
			continue
		}
		out = append(out, finding{"server " + messages.Line(name, 60), checkOK, "something listens at " + host, ""})
	}
	return out
}

// isLoopback reports whether a host names this machine.
func isLoopback(host string) bool {
	kind, special := addresses.SpecialHost(host)
	return special && kind == addresses.Loopback
}

// checkRunning looks for a mcpvisor up of this project, which should be of the same version as this command.
func (e *doctorRun) checkRunning(ctx context.Context) []finding {
	location, err := control.LocationOf(e.setup.ProjectDir)
	if err != nil {
		return []finding{{"mcpvisor up", checkNote, errorLine(err), ""}}
	}
	c, err := control.Dial(ctx, location)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return []finding{{"mcpvisor up", checkOK, "none runs for this project: commands start what they need", ""}}
	case err != nil:
		return []finding{{"mcpvisor up", checkFault, errorLine(err), "end that process, and start mcpvisor up again"}}
	}
	defer c.Close()
	hello, _ := c.Hello(ctx) // Dial has received the hello already
	if hello.Version != supervisor.Version() {
		return []finding{{"mcpvisor up", checkNote, fmt.Sprintf("process %d is mcpvisor %s, this one is %s", hello.PID,
			messages.Line(hello.Version, 40), supervisor.Version()), "end it with Ctrl-C, and start it again"}}
	}
	return []finding{{"mcpvisor up", checkOK, fmt.Sprintf("process %d keeps the servers of this project", hello.PID), ""}}
}
