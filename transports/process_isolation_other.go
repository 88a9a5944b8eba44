//go:build !linux

package transports

import (
	"context"
	"runtime"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

func kernelCapabilities() isolation.Capabilities {
	kernel := map[string]string{"darwin": "macOS", "windows": "Windows"}[runtime.GOOS]
	if kernel == "" {
		kernel = runtime.GOOS
	}
	return isolation.Capabilities{System: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernel, NoNamespace: "only Linux has them"}
}

func probeNamespace(context.Context) string { return "" }
