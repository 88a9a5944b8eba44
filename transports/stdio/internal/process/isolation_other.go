//go:build !linux

package process

import (
	"context"
	"runtime"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// kernelCapabilities names the system for errors; it can enforce nothing with namespaces here.
func kernelCapabilities() isolation.Capabilities {
	kernel := map[string]string{"darwin": "macOS", "windows": "Windows"}[runtime.GOOS]
	if kernel == "" {
		kernel = runtime.GOOS
	}
	return isolation.Capabilities{System: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernel, NoNamespace: "only Linux has them"}
}

// probeNamespace is not called with success here, because NoNamespace is set already.
func probeNamespace(context.Context) string { return "" }
