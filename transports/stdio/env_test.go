package stdio

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestChildEnv(t *testing.T) {
	unixParent := []string{"PATH=/bin", "HOME=/home/me", "LC_ALL=C.UTF-8", "XDG_CACHE_HOME=/c", "https_proxy=http://p",
		"NO_PROXY=localhost", "AWS_SECRET_ACCESS_KEY=canary", "GITHUB_TOKEN=canary", "SSH_AUTH_SOCK=/s", "SystemRoot=no",
		"SHELL=() { :;}; echo canary", "path=lower", "EMPTY=", "broken", "LD_PRELOAD=/x"}
	windowsParent := []string{`=C:=C:\work`, `Path=C:\bin`, `SystemRoot=C:\Windows`, `ProgramFiles(x86)=C:\P`,
		"APPDATA=a", "OPENAI_API_KEY=canary", "windir=w"}
	for name, c := range map[string]struct {
		goos          string
		parent        []string
		declared      map[string]string
		inherit       bool
		env, withheld []string
	}{
		"the short list": {
			"linux", unixParent, nil, false,
			[]string{"HOME=/home/me", "LC_ALL=C.UTF-8", "NO_PROXY=localhost", "PATH=/bin", "XDG_CACHE_HOME=/c",
				"https_proxy=http://p"},
			[]string{"AWS_SECRET_ACCESS_KEY", "EMPTY", "GITHUB_TOKEN", "LD_PRELOAD", "SHELL", "SSH_AUTH_SOCK", "SystemRoot",
				"path"},
		},
		"what is declared wins": {
			"linux", []string{"PATH=/bin", "GITHUB_TOKEN=parent", "OTHER=x"},
			map[string]string{"PATH": "/mine", "GITHUB_TOKEN": "", "NEW": "a=b"}, false,
			[]string{"GITHUB_TOKEN=", "NEW=a=b", "PATH=/mine"},
			[]string{"OTHER"},
		},
		"everything": {
			"linux", []string{"PATH=/bin", "GITHUB_TOKEN=parent", "F=() { :;}"}, map[string]string{"GITHUB_TOKEN": "mine"}, true,
			[]string{"F=() { :;}", "GITHUB_TOKEN=mine", "PATH=/bin"}, nil,
		},
		"everything but our own passphrase": {
			"linux", []string{"MCPVISOR_PASSPHRASE=canary", "GITHUB_TOKEN=parent"}, nil, true,
			[]string{"GITHUB_TOKEN=parent"}, []string{"MCPVISOR_PASSPHRASE"},
		},
		"our own passphrase if it is declared": {
			"windows", []string{"mcpvisor_passphrase=canary"}, map[string]string{"MCPVISOR_PASSPHRASE": "x"}, true,
			[]string{"MCPVISOR_PASSPHRASE=x"}, nil,
		},
		"the last one of a name": {
			"linux", []string{"PATH=/a", "PATH=/b"}, nil, false, []string{"PATH=/b"}, nil,
		},
		"windows": {
			"windows", windowsParent, map[string]string{"PATH": `D:\bin`}, false,
			[]string{"APPDATA=a", `PATH=D:\bin`, `ProgramFiles(x86)=C:\P`, `SystemRoot=C:\Windows`, "windir=w"},
			[]string{"OPENAI_API_KEY"},
		},
		"macOS": {
			"darwin", []string{"__CF_USER_TEXT_ENCODING=0x1F5", "TMPDIR=/t", "__CFBundleIdentifier=x"}, nil, false,
			[]string{"TMPDIR=/t", "__CF_USER_TEXT_ENCODING=0x1F5"}, []string{"__CFBundleIdentifier"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			env, withheld := childEnvFor(c.goos, c.parent, c.declared, c.inherit)
			if fmt.Sprint(env) != fmt.Sprint(c.env) {
				t.Errorf("env\ngot  %q\nwant %q", env, c.env)
			}
			if fmt.Sprint(withheld) != fmt.Sprint(c.withheld) {
				t.Errorf("withheld\ngot  %q\nwant %q", withheld, c.withheld)
			}
		})
	}
}

// Everything a person has to look up is in the comment, so it must be there.
func TestChildEnvListIsDocumented(t *testing.T) {
	source := readSource(t, "env.go")
	comment, _, _ := strings.Cut(source, "func ChildEnv")
	for name := range allowedEnv {
		if strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			name = strings.ToUpper(name)
		}
		if !strings.Contains(comment, name) {
			t.Errorf("%s is not in the comment of ChildEnv", name)
		}
	}
	for name := range allowedEnvWindows {
		if !strings.Contains(strings.ToUpper(comment), name) {
			t.Errorf("%s is not in the comment of ChildEnv", name)
		}
	}
}

func TestChildEnvGivesNoValueAway(t *testing.T) {
	_, withheld := ChildEnv([]string{"A_TOKEN=canary", "B=canary"}, nil, false)
	if slices.ContainsFunc(withheld, func(s string) bool { return strings.Contains(s, "canary") }) {
		t.Errorf("%q", withheld)
	}
}

func readSource(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
