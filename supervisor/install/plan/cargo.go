package plan

import (
	"path/filepath"
	"slices"
	"strings"
)

// cargoProgram returns the program of a crate by its absolute path among those that cargo installed. A name alone would
// be looked up in PATH, where a publisher who calls the crate bash finds a shell for the arguments. It is empty if the
// directory is not known.
func (p *Package) cargoProgram(m Machine) string {
	dir := m.CargoBin
	if dir == "" && m.Home != "" {
		dir = filepath.Join(m.Home, ".cargo", "bin")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, p.Identifier)
}

// runsArguments reports whether a crate has the name of a program that runs what its arguments say. The programs of
// cargo and rustup themselves lie in the same directory; the others are what a person may have installed there.
func runsArguments(crate string) bool {
	// python3.12 and bash5 count like python and bash.
	name := strings.TrimRight(strings.TrimSuffix(strings.ToLower(crate), ".exe"), "0123456789.")
	return slices.Contains(runnerNames, name)
}

// runnerNames lists shells, interpreters, and tools that start other programs or change files.
var runnerNames = strings.Fields(`
	sh ash bash dash zsh ksh mksh csh tcsh fish nu nushell elvish xonsh ion brush pwsh powershell cmd
	python pypy rustpython node deno bun ruby perl php lua luajit tclsh guile racket janet rhai rhai-run wasmtime wasmer steel
	awk gawk sed ed vi vim nvim helix hx emacs
	coreutils uutils busybox toybox env xargs find fd fdfind rg ripgrep parallel watchexec entr just make ninja cmake
	sudo doas su runuser setpriv chroot unshare nsenter systemd-run nohup setsid nice timeout time stdbuf script expect
	ssh scp sftp rsync curl wget nc ncat socat telnet git gh docker podman kubectl nix
	npx npm pnpm yarn bunx uv uvx pip pipx go dotnet dnx java mise proto pixi zellij tmux screen hyperfine
	cargo cargo-clippy cargo-fmt cargo-miri cargo-watch cargo-make cargo-nextest cargo-binstall cargo-install-update
	rustc rustdoc rustup rustup-init rustfmt rust-analyzer rust-gdb rust-gdbgui rust-lldb rust-script evcxr clippy-driver rls
	tar zip dd cp mv ln rm install tee cat chmod chown mcpvisor`)
