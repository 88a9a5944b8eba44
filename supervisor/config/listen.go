package config

import (
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// SplitListen takes an address apart on which agents are served: HOST:PORT, or unix:/PATH, of which socket is the path. ok is false
// for anything else. An IPv6 address stands in brackets.
func SplitListen(address string) (host, socket string, ok bool) {
	if socket, ok = strings.CutPrefix(address, "unix:"); ok {
		return "", socket, filepath.IsAbs(socket)
	}
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return "", "", false
	}
	host, port := address[:i], address[i+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", "", false
	}
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		host, ok = strings.CutSuffix(inner, "]")
		return host, "", ok
	}
	return host, "", !strings.Contains(host, ":")
}

// IsLoopback reports whether a host is an address of this machine that no other one reaches. An empty host is none: it means all.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// CheckListen says what is wrong with an address on which agents are to be served, and what to do; empty if nothing is. encrypted
// says that there is a certificate, authenticated that there are tokens.
func CheckListen(address string, encrypted, authenticated bool) (text, fix string) {
	host, socket, ok := SplitListen(address)
	switch {
	case !ok:
		return quoteShort(address) + " is neither HOST:PORT nor unix:/PATH", `write "127.0.0.1:8210"`
	case socket != "" && encrypted:
		return "a unix socket has no TLS", "remove tls"
	case socket != "" || IsLoopback(host):
		return "", ""
	case !encrypted:
		return "other machines reach this address, and what agents send would be readable on the way", `write "tls": {"certFile": …, "keyFile": …}, or an address of the loopback`
	case !authenticated:
		return "other machines reach this address, and nobody would be asked for a token", `write "tokens": {…}, or an address of the loopback`
	}
	return "", ""
}
