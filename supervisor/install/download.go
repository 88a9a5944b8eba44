package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

const (
	// maxDownload and maxUnpacked are the defaults of Options, in bytes: 512 MiB and 2 GiB.
	maxDownload = 512 << 20
	maxUnpacked = 2 << 30
	// downloadTime bounds one download, with all its redirects.
	downloadTime = 10 * time.Minute
	// maxDownloadHops bounds the redirects of one download; release pages redirect to the servers that hold their
	// files.
	maxDownloadHops = 5
)

// checksum matches a SHA-256 in hexadecimal digits, the form of fileSha256.
var checksum = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// bundleError returns an error about a bundle; text continues the sentence "the bundle".
func bundleError(class messages.Class, text, fix string, cause error) error {
	return &messages.Error{Op: "install", Class: class, Text: "the bundle " + text, Fix: fix, Err: cause}
}

// fetchBundle returns the unpacked bundle of a package, and downloads it first if the cache does not have it. A bundle
// without a checksum is refused, because its content could not be told from another one.
func (r *Registry) fetchBundle(ctx context.Context, p *plan.Package) (*plan.Bundle, error) {
	u, err := url.Parse(p.Identifier)
	// The document is checked before anything is requested.
	switch {
	case r.o.Cache == "" || r.o.Bundles == "":
		return nil, bundleError(messages.ClassConfig, "cannot be installed: no directory is set for bundles", "", nil)
	// http is accepted only if both the bundle and the registry are on this machine, as in a test.
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !addresses.ThisMachine(u.Hostname()) || !addresses.ThisMachine(r.base.Hostname())):
		return nil, bundleError(messages.ClassConfig, "is to be downloaded from "+messages.Line(p.Identifier, 200)+", which is no https URL",
			"", plan.ErrUnusable)
	case !checksum().MatchString(p.FileSHA256):
		return nil, bundleError(messages.ClassConfig, "has no checksum (fileSha256), so that nobody can tell whether it is the right one", "",
			plan.ErrUnusable)
	}
	file, err := r.openArchive(ctx, u, p.FileSHA256)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return r.unpackedBundle(file, p.FileSHA256)
}

// openArchive returns the bundle's file with the checksum verified, positioned at its start. The caller closes it.
func (r *Registry) openArchive(ctx context.Context, u *url.URL, sum string) (*os.File, error) {
	path := filepath.Join(r.o.Cache, sum+".mcpb")
	if f, err := os.Open(path); err == nil {
		// The name of the file is its checksum, which alone proves nothing about the content.
		if actual, err := hashFile(f); err == nil && actual == sum {
			return f, nil
		}
		// The cached file is damaged or not the right one, and is downloaded again.
		f.Close()
	}
	if err := os.MkdirAll(r.o.Cache, 0o700); err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be kept: "+fileErrorText(err), "", err)
	}
	temp, err := os.CreateTemp(r.o.Cache, "download-*")
	if err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be kept: "+fileErrorText(err), "", err)
	}
	// After the rename the temporary name is gone, and this does nothing.
	defer os.Remove(temp.Name())
	if err := r.downloadFile(ctx, u, sum, temp); err != nil {
		temp.Close()
		return nil, err
	}
	// The rename makes a complete and verified file appear at once; another process may have put the same one there.
	if err := files.Replace(temp, path, nil, nil); err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be kept: "+fileErrorText(err), "", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be read: "+fileErrorText(err), "", err)
	}
	return f, nil
}

// fileErrorText returns the text of a file's error without its path, which is mcpvisor's own and long.
func fileErrorText(err error) string {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return messages.Line(err.Error(), 120)
}

// hashFile returns the SHA-256 of a file in hexadecimal digits, and leaves the file at its start.
func hashFile(f io.ReadSeeker) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	// The whole file is hashed through a buffer, because a bundle may be larger than the memory.
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

// downloadFile copies the content of u to to, and fails if it has another checksum or is too long. What it has written
// by then is useless. It sends no credentials, because the publisher chose the address.
func (r *Registry) downloadFile(ctx context.Context, u *url.URL, sum string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return bundleError(messages.ClassConfig, "has an address that cannot be used", "", nil)
	}
	req.Header.Set("User-Agent", r.o.Agent)
	client := &http.Client{Transport: r.files, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxDownloadHops:
			return refusalError("redirects too often")
		case next.URL.Scheme != "https" && !(next.URL.Scheme == "http" && addresses.ThisMachine(r.base.Hostname()) && addresses.ThisMachine(u.Hostname()) && addresses.ThisMachine(next.URL.Hostname())):
			return refusalError("redirects to an address that is not https")
		}
		return nil
	}}
	from := messages.Line(u.Host, 100)
	resp, err := client.Do(req)
	if err != nil {
		return r.downloadError(from, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return bundleError(messages.ClassNetwork, fmt.Sprintf("cannot be had from %s (%d)", from, resp.StatusCode), "try again later", nil)
	}
	limit := r.o.MaxDownload
	if limit <= 0 {
		limit = maxDownload
	}
	h := sha256.New()
	// One byte more than the limit shows that the content is too long.
	n, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return r.downloadError(from, err)
	case n > limit:
		return bundleError(messages.ClassProtocol, fmt.Sprintf("from %s is larger than %d MiB", from, limit>>20), "", plan.ErrUnusable)
	// Another content under the same address may be an attack, and is not tried again.
	case hex.EncodeToString(h.Sum(nil)) != sum:
		return bundleError(messages.ClassDenied, "from "+from+" is not the one that the registry describes: its checksum differs",
			"it is not used; tell its publisher", plan.ErrUnusable)
	}
	return nil
}

// downloadError translates the error of a download from a host. The URL in net/http's error is left out, because it may
// be long and hold a secret.
func (r *Registry) downloadError(from string, err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var refused refusalError
	switch {
	case errors.As(err, &refused):
		return bundleError(messages.ClassDenied, "cannot be had: "+from+" "+string(refused), "", plan.ErrUnusable)
	case errors.Is(err, context.Canceled):
		return bundleError(messages.ClassCanceled, "was not waited for", "", err)
	case errors.Is(err, context.DeadlineExceeded):
		return bundleError(messages.ClassTimeout, "does not come from "+from+" in time", "try again later", err)
	}
	return bundleError(messages.ClassNetwork, "cannot be had from "+from+": "+innermostText(err), "try again later", err)
}
