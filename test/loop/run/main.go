// Command run plays the loop of README: five servers, one after the other, with 40 s for all of them. With -program it then
// has mcpvisor up keep the same five, and prints what mcpvisor list says two seconds after the start.
//
//	make loop
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mcpvisor/mcpvisor/test/loop"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func main() {
	if servers.Main(os.Args[1:]) {
		return
	}
	bound := flag.Duration("bound", 40*time.Second, "for all of the servers")
	program := flag.String("program", "", "the `path` of a mcpvisor")
	flag.Parse()
	loop.Play(*bound, os.Stdout)
	if *program == "" {
		return
	}
	if err := supervise(*program); err != nil {
		fmt.Fprintln(os.Stderr, "loop:", err)
		os.Exit(1)
	}
}

// supervise runs mcpvisor up in a directory of its own, and ends it.
func supervise(program string) error {
	dir, err := os.MkdirTemp("", "mcpvisor-loop-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	entries := map[string]any{}
	for _, s := range loop.Servers() {
		command, args := servers.Command(s.Fixture[0], s.Fixture[1:]...)
		entries[s.Name] = map[string]any{"command": command, "args": args}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append([]string{"--config", config, "--only"}, args...)...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		cmd.Env = append(os.Environ(), "HOME="+dir) // what it remembers goes with the directory
		for _, base := range []string{"CONFIG", "CACHE", "STATE"} {
			cmd.Env = append(cmd.Env, "XDG_"+base+"_HOME="+filepath.Join(dir, base))
		}
		return cmd
	}
	up := command("up", "--quiet")
	if err := up.Start(); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	list := command("list", "--wait", "0s", "--quiet")
	list.Stdout = os.Stdout
	fmt.Println()
	err = list.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil // it says so, because servers have failed
	}
	_ = up.Process.Signal(os.Interrupt) // it may have ended, which Wait says
	_ = up.Wait()
	return err
}
