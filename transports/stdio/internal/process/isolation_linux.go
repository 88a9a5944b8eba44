package process

import (
	"context"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports/internal/launcher"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// kernelCapabilities asks the kernel for its version, Landlock and system call filters. It starts nothing.
func kernelCapabilities() isolation.Capabilities {
	can := isolation.Capabilities{System: runtime.GOOS, Arch: runtime.GOARCH, Kernel: "Linux"}
	// The version is for error texts; what the kernel can do is asked of the kernel itself.
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		can.Kernel += " " + unix.ByteSliceToString(name.Release[:])
	}
	can.Landlock, can.NoLandlock, can.NoFilter = launcher.Detect()
	return can
}

// probeNamespace returns why no process can be started in a network of its own; empty if one can. Containers and distributions
// often forbid it, and the kernel has no other way to ask. An answer that ctx has cut off is not kept.
func probeNamespace(ctx context.Context) string {
	t := &namespaceProbe
	t.Lock()
	defer t.Unlock()
	if t.done {
		return t.why
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceProbeTime)
	defer cancel()
	// The smallest steps with a namespace of its own: the same that a server with a loopback needs.
	err := launcher.Try(ctx, isolation.Steps{Loopback: true, NoNewPrivileges: true})
	problem := ""
	if err != nil {
		problem = "no user namespace with a network of its own can be made here (" + CauseText(err) +
			"): the system or a container forbids it"
	}
	if ctx.Err() == nil {
		t.done, t.why = true, problem
	}
	return problem
}
