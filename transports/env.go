package transports

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// ChildEnv makes the environment of a child from the parent's ("NAME=value" each, as os.Environ gives it) and what was
// declared for it. Of the parent's, only a short list is passed on: what a program needs to find its files, its user,
// its language and the network. Everything else, and with it every secret in this process's environment, is withheld,
// unless inherit asks for all of it. What is declared wins. MCPVISOR_PASSPHRASE, which opens every secret that this
// program keeps, is passed on only if it is declared.
//
// env is sorted and has each name once. withheld are the names that were not passed on and not declared, sorted: the
// first place to look when a server misses something.
//
// The list (on Windows names match in any case):
//
//   - everywhere: PATH, HOME, USER, LOGNAME, SHELL, LANG, LANGUAGE, LC_*, TERM, TZ, TMPDIR, TEMP, TMP; XDG_*;
//     HTTP_PROXY, HTTPS_PROXY, FTP_PROXY, ALL_PROXY, NO_PROXY and the same in lower case; SSL_CERT_FILE, SSL_CERT_DIR,
//     NODE_EXTRA_CA_CERTS, which such a network needs as well;
//   - on macOS also __CF_USER_TEXT_ENCODING;
//   - on Windows also SystemRoot, windir, SystemDrive, ComSpec, PATHEXT, OS, USERNAME, USERDOMAIN, USERPROFILE,
//     HOMEDRIVE, HOMEPATH, APPDATA, LOCALAPPDATA, ALLUSERSPROFILE, ProgramData, ProgramFiles, ProgramFiles(x86),
//     ProgramW6432, CommonProgramFiles, CommonProgramFiles(x86), CommonProgramW6432, PUBLIC, COMPUTERNAME,
//     NUMBER_OF_PROCESSORS, PROCESSOR_ARCHITECTURE, PSModulePath.
//
// A proxy's URL may hold a password. It is passed on all the same: without it a server behind the proxy reaches
// nothing. A value that begins with "()" is a function exported by a shell, and code, and never passed on.
func ChildEnv(parent []string, declared map[string]string, inherit bool) (env, withheld []string) {
	return childEnvFor(runtime.GOOS, parent, declared, inherit)
}

// childEnvFor is ChildEnv on a system of that name.
func childEnvFor(goos string, parent []string, declared map[string]string, inherit bool) (env, withheld []string) {
	key := func(name string) string { return name }
	if goos == "windows" {
		key = strings.ToUpper
	}
	values := map[string]string{}        // by key: "NAME=value"
	withheldNames := map[string]string{} // by key: the name as it is written
	for _, kv := range parent {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" { // "=C:=C:\dir" on Windows
			continue
		}
		k := key(name)
		if inherit && k != passphraseVariable || isAllowedEnv(goos, k) && !strings.HasPrefix(value, "()") {
			values[k] = kv
			delete(withheldNames, k)
		} else {
			withheldNames[k] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		values[key(name)] = name + "=" + declared[name]
		delete(withheldNames, key(name))
	}
	env = slices.Sorted(maps.Values(values))
	withheld = slices.Sorted(maps.Values(withheldNames))
	return env, withheld
}

// passphraseVariable is the variable that package auth reads.
const passphraseVariable = "MCPVISOR_PASSPHRASE"

// isAllowedEnv reports whether a variable of the parent is passed on. name is in upper case on Windows.
func isAllowedEnv(goos, name string) bool {
	if allowedEnv[name] || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_") {
		return true
	}
	switch goos {
	case "windows":
		return allowedEnvWindows[name]
	case "darwin":
		return name == "__CF_USER_TEXT_ENCODING"
	}
	return false
}

var allowedEnv = stringSet(
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "TEMP", "TMP",
	"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
)

var allowedEnvWindows = stringSet(
	"SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "OS", "USERNAME", "USERDOMAIN", "USERPROFILE",
	"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "ALLUSERSPROFILE", "PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "PUBLIC",
	"COMPUTERNAME", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PSMODULEPATH",
)

func stringSet(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// lookupEnv finds a variable in a list. The last one counts, as it does for the system.
func lookupEnv(env []string, name string) (string, bool) {
	for _, kv := range slices.Backward(env) {
		n, value, ok := strings.Cut(kv, "=")
		if ok && (n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name)) {
			return value, true
		}
	}
	return "", false
}
