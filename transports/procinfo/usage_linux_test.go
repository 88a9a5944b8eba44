package procinfo_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// TestWorked has a shell start another that burns a processor: what the descendant does is the tree's, while it runs and
// after it was waited for.
func TestWorked(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer in.Close()
	begun, err := procinfo.UsageOf(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil { // the inner shell has ended
		t.Fatal(err)
	}
	ended, err := procinfo.UsageOf(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	// How long the inner shell waited for a processor has ended with it: CPUWait may be less than before.
	if ended.CPU-begun.CPU < 20*time.Millisecond || ended.IOBytes <= begun.IOBytes || ended.CPUWait < 0 {
		t.Errorf("from %+v to %+v", begun, ended)
	}
	if _, err := procinfo.UsageOf(os.Getpid()); err != nil {
		t.Error(err)
	}
	if _, err := procinfo.UsageOf(1 << 30); err == nil {
		t.Error("a process that is not there has worked")
	}
}
