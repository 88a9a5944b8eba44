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
)

const (
	maxDownload = 512 << 20
	maxUnpacked = 2 << 30
	// downloadTime bounds one download.
	downloadTime = 10 * time.Minute
	// maxDownloadHops: release pages redirect to where their files are.
	maxDownloadHops = 5
)

var checksum = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// bundleError is an error about a bundle.
func bundleError(class messages.Class, text, fix string, cause error) error {
	return &messages.Error{Op: "install", Class: class, Text: "the bundle " + text, Fix: fix, Err: cause}
}

// fetchBundle gives the unpacked bundle of a package, and downloads it first if need be.
func (r *Registry) fetchBundle(ctx context.Context, p *plan.Package) (*plan.Bundle, error) {
	u, err := url.Parse(p.Identifier)
	switch {
	case r.o.Cache == "" || r.o.Bundles == "":
		return nil, bundleError(messages.ClassConfig, "cannot be installed: no directory is set for bundles", "", nil)
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

// openArchive gives the bundle's file, whose content has the checksum.
func (r *Registry) openArchive(ctx context.Context, u *url.URL, sum string) (*os.File, error) {
	path := filepath.Join(r.o.Cache, sum+".mcpb")
	if f, err := os.Open(path); err == nil {
		if actual, err := hashFile(f); err == nil && actual == sum {
			return f, nil
		}
		f.Close() // half a file, or somebody's: it is downloaded again
	}
	if err := os.MkdirAll(r.o.Cache, 0o700); err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be kept: "+fileErrorText(err), "", err)
	}
	temp, err := os.CreateTemp(r.o.Cache, "download-*")
	if err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be kept: "+fileErrorText(err), "", err)
	}
	defer os.Remove(temp.Name()) // it has its name by now, or is of no use
	if err := r.downloadFile(ctx, u, sum, temp); err != nil {
		temp.Close()
		return nil, err
	}
	if err := errors.Join(temp.Close(), os.Rename(temp.Name(), path)); err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be kept: "+fileErrorText(err), "", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be read: "+fileErrorText(err), "", err)
	}
	return f, nil
}

// fileErrorText is a file's error without its path, which is ours and long.
func fileErrorText(err error) string {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return messages.Line(err.Error(), 120)
}

func hashFile(f io.ReadSeeker) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

// downloadFile writes what u gives, if it has the checksum. No credentials go along.
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
	n, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return r.downloadError(from, err)
	case n > limit:
		return bundleError(messages.ClassProtocol, fmt.Sprintf("from %s is larger than %d MiB", from, limit>>20), "", plan.ErrUnusable)
	case hex.EncodeToString(h.Sum(nil)) != sum:
		return bundleError(messages.ClassDenied, "from "+from+" is not the one that the registry describes: its checksum differs",
			"it is not used; tell its publisher", plan.ErrUnusable)
	}
	return nil
}

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
