package plan

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
)

// imagePattern matches an image reference: no scheme and no option, with a tag and a digest if they are there.
var imagePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*(:[0-9]+)?(/[a-zA-Z0-9][a-zA-Z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?` +
		`(@sha256:[0-9a-f]{64})?$`)
})

// digestPattern matches a SHA-256 in hexadecimal digits.
var digestPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// containerCommand returns the command line of an image. Variables reach the container by name (-e NAME) and their
// values stand in the entry's env, so that no secret is an argument, which other processes could read.
func (f *resolver) containerCommand(p *Package, m Machine) (command, error) {
	ref, err := f.imageReference(p)
	if err != nil {
		return command{}, err
	}
	runtime, args, declared, err := f.resolveInputs(p)
	if err != nil {
		return command{}, err
	}
	// --rm leaves no container behind, and -i connects standard input.
	c := command{program: p.runnerProgram(m), env: map[string]mixedText{}, args: publishedAll([]string{"run", "--rm", "-i"})}
	if runtime, err = f.runtimeOptions(c.program, imageOptions, runtime, "run", ref, p.Identifier); err != nil {
		return command{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		v := declared[name]
		_, fromPerson := f.source.Env[name]
		// Passed by name, such a variable would also be in the environment of docker itself and change it. Passed by
		// value it affects the image alone.
		if _, isSteering := steer.Reason(name); !fromPerson && (actsOnTheRuntime(name) || isSteering && !v.isFromPerson()) {
			if isSecretKey(p.EnvironmentVariables, name) {
				return command{}, planError(ErrUnusable, "the image wants a secret in "+shortText(name)+
					", a variable that acts on "+c.program+" itself", "")
			}
			c.args = append(c.args, publishedText("-e"), append(publishedText(name+"="), v...))
			continue
		}
		c.args = append(c.args, publishedAll([]string{"-e", name})...)
		c.env[name] = v
	}
	// -e with a name alone passes a variable of docker's own environment into the container. Only names that the
	// document declares are accepted, because another one would hand out a secret of the person.
	for i, w := range runtime {
		if name := w.String(); i > 0 && passesEnv(runtime[i-1].String()) && !strings.Contains(name, "=") {
			if _, ok := c.env[name]; !ok {
				return command{}, notAllowedError(c.program, append(publishedText(runtime[i-1].String()+" "), w...))
			}
		}
	}
	c.args = slices.Concat(c.args, runtime, publishedAll([]string{ref}), args)
	return c, nil
}

// imageReference returns the whole reference of the image. Older documents have the host, the tag and the digest in
// keys of their own.
func (f *resolver) imageReference(p *Package) (string, error) {
	ref := p.Identifier
	// docker.io is the default of every reference.
	if host, err := url.Parse(p.RegistryBaseURL); err == nil && host.Host != "" && host.Host != "docker.io" &&
		!strings.HasPrefix(ref, host.Host+"/") {
		ref = host.Host + "/" + ref
	}
	// A colon before the last slash belongs to the port of a host.
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	if p.Version != "" && !strings.ContainsAny(name, ":@") {
		ref += ":" + p.Version
	}
	// A digest pins the content, which a tag does not.
	if p.FileSHA256 != "" && !strings.Contains(ref, "@") {
		if !digestPattern().MatchString(p.FileSHA256) {
			return "", planError(ErrUnusable, "the digest of the image is no SHA-256", "")
		}
		ref += "@sha256:" + p.FileSHA256
	}
	if !imagePattern().MatchString(ref) {
		return "", planError(ErrUnusable, shortText(ref)+" is no name of an image", "")
	}
	if !strings.Contains(ref, "@") {
		f.addNote("the image is named by a tag, which its publisher can move")
	}
	return ref, nil
}

// passesEnv reports whether an option gives the container a variable.
func passesEnv(name string) bool { return name == "-e" || name == "--env" }

// actsOnTheRuntime reports whether an environment variable changes what docker or podman itself does.
func actsOnTheRuntime(name string) bool {
	// Windows and some programs ignore the case of names.
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"DOCKER_", "BUILDKIT_", "CONTAINER_", "CONTAINERS_", "PODMAN_", "LD_", "DYLD_", "XDG_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"PATH", "HOME", "USERPROFILE", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	}, upper)
}

// isSecretKey reports whether the document marks a variable as secret.
func isSecretKey(list []KeyValue, name string) bool {
	return slices.ContainsFunc(list, func(kv KeyValue) bool { return kv.Name == name && kv.IsSecret })
}
