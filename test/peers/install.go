package peers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

const (
	// installTimeout bounds one installation. npm's own retries are switched down, so that an unreachable registry is known
	// sooner.
	installTimeout = 5 * time.Minute
	// failureLifetime is the time for which a failed installation is believed without another try: the tests of one run ask many times.
	failureLifetime = 10 * time.Minute
	// oldestNode is the major version that the servers' own package.json files ask for.
	oldestNode = 20
)

// Install installs everything that is missing, all at once because each waits for the network, whatever failed before, and
// reports to log. It returns the reasons why something cannot be had.
func Install(log io.Writer) []error {
	log = &lockedWriter{writer: log}
	parts := []struct {
		what    string
		install func() (path string, err error)
	}{
		{"the servers of npm", func() (string, error) {
			s, err := installNPMServers(log, true)
			if err != nil {
				return "", err
			}
			return s.dir, nil
		}},
		{"the authorization server of npm", func() (string, error) {
			_, dir, err := installAuthServer(log, true)
			return dir, err
		}},
		{"the MCP inspector", func() (string, error) {
			i, err := installInspector(log, true)
			if err != nil {
				return "", err
			}
			return i.Script, nil
		}},
		{"the TypeScript SDK", func() (string, error) {
			c, err := installTypeScript(log, true)
			if err != nil {
				return "", err
			}
			return c.Script, nil
		}},
		{"the Go SDK's everything-server", func() (string, error) { return buildGoServer(log, true) }},
		{"the MCP registry", func() (string, error) { return buildRegistry(log, true) }},
	}
	failures := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			switch path, err := part.install(); {
			case errors.Is(err, errNoDatabase):
				fmt.Fprintf(log, "peers: no %s: %v\n", strings.TrimPrefix(part.what, "the "), err)
			case err != nil:
				failures[i] = fmt.Errorf("%s: %w", part.what, err)
			default:
				fmt.Fprintf(log, "peers: %s: %s\n", part.what, relativePath(path))
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(failures, func(err error) bool { return err == nil })
}

// lockedWriter passes on one write at a time.
type lockedWriter struct {
	mu     sync.Mutex
	writer io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writer.Write(p)
}

// installNPMServers finds node and npx on this machine and installs the servers. retry tries again although it failed a while ago.
func installNPMServers(log io.Writer, retry bool) (*Servers, error) {
	s := &Servers{}
	var err error
	if s.node, err = exec.LookPath("node"); err != nil {
		return nil, errors.New("node is not installed")
	}
	if s.npx, err = exec.LookPath("npx"); err != nil {
		return nil, errors.New("npm is not installed")
	}
	if err := nodeIsNewEnough(s.node, oldestNode); err != nil {
		return nil, err
	}
	s.dir, err = installPackages(log, retry, "npm", "npm")
	return s, err
}

// installPackages gives the folder in which npm installed what the package.json and package-lock.json in a folder pin; the
// folder is relative to this package's.
func installPackages(log io.Writer, retry bool, kind, folder string, beside ...string) (string, error) {
	pins := []string{folder + "/package.json", folder + "/package-lock.json"}
	for _, name := range beside {
		pins = append(pins, folder+"/"+name)
	}
	return installOnce(log, retry, kind, pins, func(ctx context.Context, from, dir string) *exec.Cmd {
		// Scripts of packages are not run: none of these packages needs one.
		cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
			"--fetch-retries=1", "--fetch-timeout=60000")
		cmd.Dir = dir
		return cmd
	})
}

// nodeIsNewEnough returns an error for a node that is older than the packages need; oldest is its major version.
func nodeIsNewEnough(node string, oldest int) error {
	out, err := exec.Command(node, "--version").Output()
	if err != nil {
		return fmt.Errorf("node --version: %w", err)
	}
	version := strings.TrimSpace(string(out))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldest {
		return fmt.Errorf("node is %s, and %d or newer is needed", version, oldest)
	}
	return nil
}

// buildGoServer builds the server from its own module, whose versions do not touch those of this one.
func buildGoServer(log io.Writer, retry bool) (string, error) {
	name := "everything-server"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	pins := []string{"gosdk/go.mod", "gosdk/go.sum"}
	dir, err := installOnce(log, retry, "gosdk", pins, func(ctx context.Context, from, dir string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name),
			"github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
		cmd.Dir = filepath.Join(from, "gosdk")
		cmd.Env = append(os.Environ(), "GOWORK=off")
		return cmd
	})
	return filepath.Join(dir, name), err
}

// installOnce gives the folder in .cache/peers that holds what command installed from the pins, which are copied there first.
// Its name holds a digest of the pins. Only one process installs at a time; the others wait for it.
func installOnce(
	log io.Writer, retry bool, kind string, pins []string, command func(ctx context.Context, from, dir string) *exec.Cmd,
) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	from := filepath.Join(root, "test", "peers")
	digest := sha256.New()
	contents := map[string][]byte{}
	for _, pin := range pins {
		b, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(pin)))
		if err != nil {
			return "", err
		}
		contents[filepath.Base(pin)] = b
		digest.Write(b)
	}
	cache := filepath.Join(root, ".cache", "peers")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%x", kind, digest.Sum(nil)[:6]))
	unlock, err := lockedfile.MutexAt(dir + ".lock").Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	done, failed := filepath.Join(dir, "installed"), dir+".failed"
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if reason, ok := recentFailure(failed); ok && !retry {
		return "", errors.New(reason)
	}
	fmt.Fprintf(log, "peers: installing %s, once …\n", kind)
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	err = runInstall(dir, contents, command(ctx, from, dir))
	if err != nil {
		// The reason is for the other tests of this run; that it cannot be kept only costs time.
		_ = os.WriteFile(failed, []byte(err.Error()), 0o644)
		return "", err
	}
	_ = os.Remove(failed) // usually there is none
	return dir, os.WriteFile(done, nil, 0o644)
}

// recentFailure returns why an installation failed a short while ago. Every test that asks would otherwise wait for the network again.
func recentFailure(failed string) (reason string, ok bool) {
	info, err := os.Stat(failed)
	if err != nil || time.Since(info.ModTime()) > failureLifetime {
		return "", false
	}
	b, err := os.ReadFile(failed)
	return string(b), err == nil
}

// runInstall begins with an empty folder that holds the pins alone, and runs the command in it.
func runInstall(dir string, pins map[string][]byte, cmd *exec.Cmd) error {
	if err := os.RemoveAll(dir); err != nil { // half an installation
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, b := range pins {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		what := strings.Join(cmd.Args[:2], " ")
		return fmt.Errorf("%s: %w; is the registry reachable?\n%s", what, err, firstLines(output.String()))
	}
	return nil
}

// firstLines is the start of a tool's output, where go and npm say what went wrong.
func firstLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[:min(len(lines), 6)], "\n")
}

// moduleRoot is the folder of this module's go.mod: tests run in the folders of their packages, all below it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(b, []byte("module github.com/mcpvisor/mcpvisor\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of mcpvisor")
		}
		dir = parent
	}
}

// relativePath returns a path below the module's root as people read it; others stay whole.
func relativePath(path string) string {
	root, err := moduleRoot()
	if err != nil {
		return path
	}
	r, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return r
}
