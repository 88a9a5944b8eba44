package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// running builds a package with these words for its program, each a positional argument, so that they reach
// the command as they are.
func running(kind, hint string, runtime ...string) (plan.Result, error) {
	p := plan.Package{RegistryType: kind, Identifier: "x", Version: "1", RuntimeHint: hint, Transport: plan.Transport{Type: "stdio"}}
	for _, word := range runtime {
		v := plan.Text(word)
		p.RuntimeArguments = append(p.RuntimeArguments, plan.Argument{Type: "positional", Field: plan.Field{Value: &v}})
	}
	return plan.Build(plan.Way{Kind: kind, Package: &p}, plan.ValueSource{}, everything, nil)
}

// TestRuntimeWordsAreAnAllowList: a word for the program that runs the package is one of its table or an error that names
// it, however it is written.
func TestRuntimeWordsAreAnAllowList(t *testing.T) {
	for _, c := range []struct{ kind, hint, words string }{
		{plan.NPM, "", "-p evil"}, {plan.NPM, "", "--package=evil"}, {plan.NPM, "", "--pack evil"}, {plan.NPM, "", "-c id"},
		{plan.NPM, "", "--call=id"}, {plan.NPM, "", "-yc id"}, {plan.NPM, "", "--registry https://evil.example"},
		{plan.NPM, "", "--regis=https://evil.example"}, {plan.NPM, "", "--REGISTRY=x"}, {plan.NPM, "", "evil"},
		{plan.NPM, "", "--node-options --require=./x"}, {plan.NPM, "", "--script-shell=/x"}, {plan.NPM, "", "--prefix /x"},
		{plan.NPM, "", "--yes=false"}, {plan.NPM, "", "--quiet=x"}, {plan.NPM, "bunx", "--package evil"}, {plan.NPM, "bunx", "--cwd=/x"},
		{plan.PyPI, "", "--with evil"}, {plan.PyPI, "", "-wevil"}, {plan.PyPI, "", "--from evil"}, {plan.PyPI, "", "--from=x@2"},
		{plan.PyPI, "", "--from x@https://evil.example/x.whl"}, {plan.PyPI, "", "--from x[a]@file:///x"}, {plan.PyPI, "", "--from"},
		{plan.PyPI, "", "--python /tmp/evil"}, {plan.PyPI, "", "--python=./evil"}, {plan.PyPI, "", "--env-file x"},
		{plan.PyPI, "", "--index=https://evil.example"}, {plan.PyPI, "", "-i https://evil.example"}, {plan.PyPI, "", "sh"},
		{plan.PyPI, "pipx", "--pip-args=-i"}, {plan.PyPI, "pipx", "--spec evil"}, {plan.PyPI, "pipx", "https://evil.example/x.py"},
		{plan.NuGet, "", "--source https://evil.example"}, {plan.NuGet, "", "--add-source=x"}, {plan.NuGet, "", "--configfile x"},
		{plan.OCI, "", "-v/:/host"}, {plan.OCI, "", "-itv/x:/y"}, {plan.OCI, "", "-it"}, {plan.OCI, "", "-v /:/host"}, {plan.OCI, "", "--volume=/:/host"},
		{plan.OCI, "", "--mount type=bind,src=/,dst=/host"}, {plan.OCI, "", "--mount type=bind,src=/,dst=/x,src=/"},
		{plan.OCI, "", "--env-file=/etc/passwd"}, {plan.OCI, "", "--privileged"}, {plan.OCI, "", "--privileged=true"},
		{plan.OCI, "", "--network host"}, {plan.OCI, "", "--network=container:other"}, {plan.OCI, "", "--net host"}, {plan.OCI, "", "--pid host"},
		{plan.OCI, "", "--device /dev/sda"}, {plan.OCI, "", "--cap-add=ALL"}, {plan.OCI, "", "--security-opt seccomp=unconfined"},
		{plan.OCI, "", "-p 80:80"}, {plan.OCI, "", "--add-host a:host-gateway"}, {plan.OCI, "", "--volumes-from a"}, {plan.OCI, "", "--uts=host"},
		{plan.OCI, "", "-e AWS_SECRET_ACCESS_KEY"}, {plan.OCI, "", "--env=SSH_AUTH_SOCK"}, {plan.OCI, "", "-eHOME"}, {plan.OCI, "", "evil"},
		{plan.OCI, "", "--interactive=false"}, {plan.OCI, "", "--memory"}, {plan.OCI, "", "--memory --privileged"},
		{plan.OCI, "podman", "--rootfs"}, {plan.OCI, "podman", "--hooks-dir=/x"}, {plan.OCI, "", "--tmpfs /x:/y"}, {plan.OCI, "", "--workdir x:y"},
	} {
		words := strings.Fields(c.words)
		flag, _, _ := strings.Cut(words[0], "=")
		r, err := running(c.kind, c.hint, words...)
		var e *messages.Error
		if !errors.Is(err, plan.ErrUnusable) || !errors.As(err, &e) || !strings.Contains(e.Text, flag) {
			t.Errorf("%s %s: %q, %v", c.kind, c.words, r.Spec.Args, err)
		}
	}
}

// TestRuntimeWordsThatAreUsual reach the program, each option and value as a word, and none of them twice.
func TestRuntimeWordsThatAreUsual(t *testing.T) {
	for _, c := range []struct{ kind, hint, words, want string }{
		{plan.NPM, "", "-y --quiet --prefer-offline x@1", "npx -y --quiet --prefer-offline x@1"},
		{plan.NPM, "", "--yes=true --", "npx -y x@1"},
		{plan.NPM, "bunx", "-y", "bunx x@1"},
		{plan.PyPI, "", "--python=3.12 -q x", "uvx --python 3.12 -q x@1"},
		{plan.PyPI, "", "--from x==1", "uvx --from x==1 x"},
		{plan.PyPI, "", "--from=x[cli]", "uvx --from x[cli]==1 x"},
		{plan.PyPI, "pipx", "run --quiet", "pipx run --quiet x==1"},
		{plan.NuGet, "", "-y --prerelease --", "dnx --yes --prerelease x@1"},
		{plan.OCI, "", "run -i --rm --init --network=none -m 512m --cpus .5 --cap-drop ALL --security-opt no-new-privileges -u 1000:1000 x:1",
			"docker run --rm -i --init --network none -m 512m --cpus .5 --cap-drop ALL --security-opt no-new-privileges -u 1000:1000 x:1"},
		{plan.OCI, "podman", "-e A=b=c --env=LD_PRELOAD=/x --entrypoint /bin/x --tmpfs /tmp:size=1m,exec --platform linux/amd64",
			"podman run --rm -i -e A=b=c --env LD_PRELOAD=/x --entrypoint /bin/x --tmpfs /tmp:size=1m,exec --platform linux/amd64 x:1"},
	} {
		r, err := running(c.kind, c.hint, strings.Fields(c.words)...)
		if got := strings.Join(slices.Concat([]string{r.Spec.Command}, r.Spec.Args), " "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.words, got, err, c.want)
		}
	}
}

// TestCratesAreNoShells: a crate's program stands where cargo puts it, and has no name of a program that runs its arguments.
func TestCratesAreNoShells(t *testing.T) {
	for _, name := range strings.Fields("bash SH python3.12 cmd.exe env xargs nu cargo rustup deno busybox sudo ssh find mcpvisor") {
		p := plan.Package{RegistryType: plan.Cargo, Identifier: name, Transport: plan.Transport{Type: "stdio"}}
		if r, err := plan.Build(plan.Way{Kind: plan.Cargo, Package: &p}, plan.ValueSource{}, everything, nil); !errors.Is(err, plan.ErrUnusable) {
			t.Errorf("%s: %q, %v", name, r.Spec.Command, err)
		}
	}
	p := plan.Package{RegistryType: plan.Cargo, Identifier: "rust-mcp-filesystem", Transport: plan.Transport{Type: "stdio"}}
	way := plan.Way{Kind: plan.Cargo, Package: &p}
	if r, err := plan.Build(way, plan.ValueSource{}, plan.Machine{OS: "linux", CargoBin: "/cargo/bin"}, nil); err != nil || r.Spec.Command != "/cargo/bin/rust-mcp-filesystem" {
		t.Errorf("%q, %v", r.Spec.Command, err)
	}
	if r, err := plan.Build(way, plan.ValueSource{}, plan.Machine{OS: "linux"}, nil); !errors.Is(err, plan.ErrUnusable) {
		t.Errorf("%q, %v", r.Spec.Command, err)
	}
}

// TestABundleSteersNoOtherProgram: its variables may lead into the bundle, as PYTHONPATH does, or be the person's.
func TestABundleSteersNoOtherProgram(t *testing.T) {
	manifest := func(name, value string) string {
		return `{"server":{"type":"python","entry_point":"main.py","mcp_config":{"command":"python3","env":{"` + name + `":"` + value + `"}}},` +
			`"user_config":{"proxy":{"type":"string"}}}`
	}
	given := plan.ValueSource{GivenValues: plan.GivenValues{Args: map[string][]string{"proxy": {"http://proxy.example"}}}}
	for _, c := range [][2]string{
		{"PYTHONPATH", "${__dirname}/lib:${__dirname}"}, {"HTTPS_PROXY", "${user_config.proxy}"}, {"API_KEY", "x"}, {"PYTHONUNBUFFERED", "1"},
	} {
		if _, err := bundled(t, manifest(c[0], c[1]), everything, given); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	given.Args = nil
	for _, c := range [][2]string{
		{"PYTHONPATH", "${__dirname}/lib:/tmp"}, {"PythonPath", "${__dirname}/../x"}, {"LD_PRELOAD", "/tmp/x.so"}, {"NODE_OPTIONS", "--import=data:x"},
		{"https_proxy", "http://evil.example"}, {"PYTHONPATH", ""}, {"PYTHONPATH", "${__dirname}evil"},
	} {
		if r, err := bundled(t, manifest(c[0], c[1]), everything, given); !errors.Is(err, plan.ErrUnusable) || !strings.Contains(err.Error(), c[0]) {
			t.Errorf("%s: %q, %v", c, r.Spec.Env, err)
		}
	}
}
