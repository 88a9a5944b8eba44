package stdio

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// ChildEnv makes the environment of a child from the parent's ("NAME=value" each, as os.Environ gives it) and from what was
// declared for it. Of the parent's, it passes on only a short list: what a program needs to find its files, its user, its
// language and the network. It withholds everything else, and with it every secret in this process's environment, unless inherit
// asks for all of it. Declared values replace inherited ones. MCPVISOR_PASSPHRASE, which opens every secret that this program
// keeps, is passed on only if it is declared.
//
// env is sorted and has each name once. withheld has the names that were neither passed on nor declared, sorted: a person whose
// server misses something looks there first.
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
// A proxy's URL may hold a password. It is passed on all the same, because a server behind the proxy reaches nothing without it.
// A value that begins with "()" is a function that a shell has exported; it is code, and never passed on unless all is inherited.
func ChildEnv(parent []string, declared map[string]string, inherit bool) (env, withheld []string) {
	return childEnvFor(runtime.GOOS, parent, declared, inherit)
}

// childEnvFor does the work of ChildEnv for the named system, so that tests on one system cover the lists of all three.
func childEnvFor(goos string, parent []string, declared map[string]string, inherit bool) (env, withheld []string) {
	// Two names that the system takes for the same variable must have the same key, or the child would get both.
	key := func(name string) string { return name }
	if goos == "windows" {
		key = strings.ToUpper
	}
	// values has the "NAME=value" of each key, withheldNames the name as the parent writes it.
	values := map[string]string{}
	withheldNames := map[string]string{}
	for _, kv := range parent {
		name, value, ok := strings.Cut(kv, "=")
		// On Windows, "=C:=C:\dir" keeps the current directory of a drive; it is no variable.
		if !ok || name == "" {
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
	// In sorted order, so that of two declared names that differ in case alone the same one wins every time.
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		values[key(name)] = name + "=" + declared[name]
		delete(withheldNames, key(name))
	}
	env = slices.Sorted(maps.Values(values))
	withheld = slices.Sorted(maps.Values(withheldNames))
	return env, withheld
}

// passphraseVariable is the variable from which package auth reads the passphrase of the encrypted store.
const passphraseVariable = "MCPVISOR_PASSPHRASE"

// isAllowedEnv reports whether a variable of the parent is passed on. The caller gives name in upper case on Windows.
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

// allowedEnv are the names of the list in ChildEnv that every system passes on. The variables of proxies are looked up in lower
// case too, because curl and many libraries read only those.
var allowedEnv = stringSet(
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "TEMP", "TMP",
	"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
)

// allowedEnvWindows are the further names of the list on Windows, in upper case. Programs there fail in odd ways without
// SystemRoot (no sockets) and ComSpec (no shell).
var allowedEnvWindows = stringSet(
	"SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "OS", "USERNAME", "USERDOMAIN", "USERPROFILE",
	"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "ALLUSERSPROFILE", "PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "PUBLIC",
	"COMPUTERNAME", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PSMODULEPATH",
)

// stringSet makes a set for look-ups.
func stringSet(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
