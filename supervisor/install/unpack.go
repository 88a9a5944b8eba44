package install

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

const (
	// maxFiles bounds the files of a bundle, and maxManifest its manifest.
	maxFiles    = 50_000
	maxManifest = 1 << 20
)

// refusedArchive is an archive that wants what no bundle needs.
func refusedArchive(format string, args ...any) error {
	return bundleError(messages.ClassDenied, "is refused: "+messages.Line(fmt.Sprintf(format, args...), 300), "tell its publisher",
		plan.ErrUnusable)
}

// unpackedBundle gives the directory that holds what an archive holds: the one of an earlier time if it still does, else a new
// one, which appears as a whole.
func (r *Registry) unpackedBundle(file *os.File, sum string) (*plan.Bundle, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be read: "+fileErrorText(err), "", err)
	}
	archive, err := zip.NewReader(file, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, bundleError(messages.ClassProtocol, "is no zip archive", "tell its publisher", plan.ErrUnusable)
	}
	u, err := r.checkArchive(archive)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(r.o.Bundles, sum))
	if err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	if err := u.compareDir(dir); err != nil {
		if err := u.replaceDir(dir); err != nil {
			return nil, err
		}
	}
	return &plan.Bundle{Dir: dir, Manifest: u.manifest, Has: func(name string) bool { return u.files[name] != nil }}, nil
}

// bundleArchive is an archive whose names were looked at.
type bundleArchive struct {
	limit    int64
	files    map[string]*zip.File
	order    []string
	manifest plan.Manifest
}

// checkArchive checks every name of an archive before anything is written, and reads its manifest.
func (r *Registry) checkArchive(archive *zip.Reader) (*bundleArchive, error) {
	u := &bundleArchive{limit: r.o.MaxUnpacked, files: map[string]*zip.File{}}
	if u.limit <= 0 {
		u.limit = maxUnpacked
	}
	if len(archive.File) > maxFiles {
		return nil, refusedArchive("it holds more than %d files", maxFiles)
	}
	seenNames := map[string]bool{}
	for _, f := range archive.File {
		name := strings.TrimSuffix(f.Name, "/")
		mode := f.Mode()
		switch {
		case name == "" || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name ||
			strings.ContainsAny(name, "\\:\x00"):
			return nil, refusedArchive("the name %q leads out of its directory", f.Name)
		case mode.IsDir():
			continue // directories come with their files
		case !mode.IsRegular():
			return nil, refusedArchive("%q is no file but a %s", f.Name, kindOf(mode))
		}
		key := name
		if runtime.GOOS != "linux" { // file systems that do not tell Readme from README
			key = strings.ToLower(name)
		}
		if seenNames[key] {
			return nil, refusedArchive("the name %q stands twice", f.Name)
		}
		seenNames[key] = true
		u.files[name] = f
		u.order = append(u.order, name)
	}
	for name := range u.files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if u.files[dir] != nil {
				return nil, refusedArchive("%q is a file and a directory", dir)
			}
		}
	}
	return u, u.readManifest()
}

func kindOf(mode fs.FileMode) string {
	if mode&fs.ModeSymlink != 0 {
		return "link"
	}
	return "special file"
}

func (u *bundleArchive) readManifest() error {
	f := u.files["manifest.json"]
	if f == nil {
		return bundleError(messages.ClassProtocol, "has no manifest.json", "tell its publisher", plan.ErrDocument)
	}
	in, err := f.Open()
	if err != nil {
		return bundleError(messages.ClassProtocol, "has a manifest.json that cannot be unpacked", "", plan.ErrDocument)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil || len(text) > maxManifest {
		return bundleError(messages.ClassProtocol, "has a manifest.json that cannot be unpacked, or is larger than 1 MiB", "", plan.ErrDocument)
	}
	u.manifest, err = plan.ReadManifest(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	return err
}

// replaceDir unpacks into a directory of its own, and gives it its name when it is whole.
func (u *bundleArchive) replaceDir(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	temp, err := os.MkdirTemp(parent, "unpacking-*")
	if err != nil {
		return bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	defer os.RemoveAll(temp) // it has its name by now, or is of no use
	if err := u.unpackInto(temp); err != nil {
		return err
	}
	old := temp + "-old"
	if err := os.Rename(dir, old); err == nil { // changed since it was unpacked
		defer os.RemoveAll(old) // it is out of the way
	}
	if err := os.Rename(temp, dir); err != nil && u.compareDir(dir) != nil { // another process may have been faster
		return bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	return nil
}

// unpackInto writes the files. The root keeps every path inside, whatever else happens to the directory meanwhile.
func (u *bundleArchive) unpackInto(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	defer root.Close()
	programs := u.manifest.Programs()
	bytesLeft := u.limit
	for _, name := range u.order {
		n, err := u.writeFile(root, name, slices.Contains(programs, name), bytesLeft)
		if err != nil {
			return err
		}
		bytesLeft -= n
	}
	return nil
}

// writeFile unpacks one file of at most limit bytes. What the archive says of its size does not count.
func (u *bundleArchive) writeFile(root *os.Root, name string, program bool, limit int64) (int64, error) {
	f := u.files[name]
	mode := fs.FileMode(0o600)
	if program || f.Mode()&0o111 != 0 {
		mode = 0o700
	}
	local := filepath.FromSlash(name)
	if dir := filepath.Dir(local); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return 0, bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
		}
	}
	in, err := f.Open()
	if err != nil {
		return 0, bundleError(messages.ClassProtocol, "cannot be unpacked: "+messages.Line(name, 120)+" is damaged", "", plan.ErrUnusable)
	}
	defer in.Close()
	out, err := root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	closed := out.Close()
	switch {
	case n > limit:
		return n, refusedArchive("it unpacks to more than %d MiB", u.limit>>20)
	case isDamaged(err):
		return n, bundleError(messages.ClassProtocol, "cannot be unpacked: "+messages.Line(name, 120)+" is damaged", "", plan.ErrUnusable)
	case err != nil || closed != nil:
		return n, bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(errors.Join(err, closed)), "", err)
	}
	return n, nil
}

// isDamaged tells an archive that cannot be read from a disk that cannot be written.
func isDamaged(err error) bool {
	var at *os.PathError
	return err != nil && !errors.As(err, &at)
}

var errDiffers = errors.New("it is not what the archive holds")

// compareDir compares a directory with the archive. What the server itself has added is not looked at.
func (u *bundleArchive) compareDir(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	bytesLeft := u.limit
	for _, name := range u.order {
		if err := compareFile(root, u.files[name], filepath.FromSlash(name), &bytesLeft); err != nil {
			return err
		}
	}
	return nil
}

func compareFile(root *os.Root, f *zip.File, name string, bytesLeft *int64) error {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return errDiffers
	}
	have, err := root.Open(name)
	if err != nil {
		return err
	}
	defer have.Close()
	want, err := f.Open()
	if err != nil {
		return err
	}
	defer want.Close()
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(want, a)
		m, _ := io.ReadFull(have, b)
		if *bytesLeft -= int64(n); n != m || !bytes.Equal(a[:n], b[:m]) || *bytesLeft < 0 {
			return errDiffers
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
