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
	// maxFiles bounds the files of a bundle, and maxManifest its manifest in bytes.
	maxFiles    = 50_000
	maxManifest = 1 << 20
)

// refusedArchive returns the error about an archive with content that no honest bundle needs.
func refusedArchive(format string, args ...any) error {
	return bundleError(messages.ClassDenied, "is refused: "+messages.Line(fmt.Sprintf(format, args...), 300), "tell its publisher",
		plan.ErrUnusable)
}

// unpackedBundle returns the directory with the content of an archive: that of an earlier installation if it is still
// the same, else a new one, which appears as a whole.
func (r *Registry) unpackedBundle(file *os.File, sum string) (*plan.Bundle, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, bundleError(messages.ClassConfig, "cannot be read: "+fileErrorText(err), "", err)
	}
	archive, err := zip.NewReader(file, info.Size())
	// checkArchive checks the names itself, and names the bad one in its error.
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
	// The comparison reads the whole directory: a server may have changed its own files.
	if err := u.compareDir(dir); err != nil {
		if err := u.replaceDir(dir); err != nil {
			return nil, err
		}
	}
	return &plan.Bundle{Dir: dir, Manifest: u.manifest, Has: func(name string) bool { return u.files[name] != nil }}, nil
}

// bundleArchive is an archive whose names have been checked.
type bundleArchive struct {
	// limit bounds the unpacked content in bytes.
	limit int64
	// files maps the cleaned names, with slashes, to the files; order keeps the archive's order.
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
	// Readers of archives differ on which of two equal names they take.
	seenNames := map[string]bool{}
	for _, f := range archive.File {
		name := strings.TrimSuffix(f.Name, "/")
		mode := f.Mode()
		switch {
		// A backslash and a colon separate parts of paths on Windows.
		case name == "" || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name ||
			strings.ContainsAny(name, "\\:\x00"):
			return nil, refusedArchive("the name %q leads out of its directory", f.Name)
		case mode.IsDir():
			// Directories are created for the files in them.
			continue
		case !mode.IsRegular():
			return nil, refusedArchive("%q is no file but a %s", f.Name, kindOf(mode))
		}
		key := name
		// On these systems Readme and README may be one file, and the second would replace the first.
		if runtime.GOOS != "linux" {
			key = strings.ToLower(name)
		}
		if seenNames[key] {
			return nil, refusedArchive("the name %q stands twice", f.Name)
		}
		seenNames[key] = true
		u.files[name] = f
		u.order = append(u.order, name)
	}
	// A file in the place of a directory would make the unpacking fail halfway.
	for name := range u.files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if u.files[dir] != nil {
				return nil, refusedArchive("%q is a file and a directory", dir)
			}
		}
	}
	return u, u.readManifest()
}

// kindOf names the kind of an entry that is no regular file.
func kindOf(mode fs.FileMode) string {
	if mode&fs.ModeSymlink != 0 {
		return "link"
	}
	return "special file"
}

// readManifest reads manifest.json, with a byte order mark or without.
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
	// The archive's own statement of the size is not used.
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil || len(text) > maxManifest {
		return bundleError(messages.ClassProtocol, "has a manifest.json that cannot be unpacked, or is larger than 1 MiB", "", plan.ErrDocument)
	}
	u.manifest, err = plan.ReadManifest(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	return err
}

// replaceDir unpacks into a temporary directory and renames it to dir when it is complete, so that a crash leaves no
// half bundle under that name.
func (u *bundleArchive) replaceDir(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	// The directory is beside its final place, because a rename does not cross file systems.
	temp, err := os.MkdirTemp(parent, "unpacking-*")
	if err != nil {
		return bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	// After the rename the temporary name is gone, and this does nothing.
	defer os.RemoveAll(temp)
	if err := u.unpackInto(temp); err != nil {
		return err
	}
	old := temp + "-old"
	// A directory exists that differs from the archive.
	if err := os.Rename(dir, old); err == nil {
		defer os.RemoveAll(old)
	}
	// Another process may have installed the same bundle in between.
	if err := os.Rename(temp, dir); err != nil && u.compareDir(dir) != nil {
		return bundleError(messages.ClassConfig, "cannot be unpacked: "+fileErrorText(err), "", err)
	}
	return nil
}

// unpackInto writes the files. The os.Root keeps every path inside the directory, also if another process puts a link
// into it meanwhile.
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

// writeFile unpacks one file of at most limit bytes and returns its size. It counts the bytes that come out, because
// the size that the archive states may be wrong. Only programs of the manifest and files that are executable in the
// archive become executable.
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
	// O_EXCL makes two names that the file system takes for one an error.
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

// isDamaged tells an archive that cannot be decompressed from a disk that cannot be written, whose errors have a path.
func isDamaged(err error) bool {
	var at *os.PathError
	return err != nil && !errors.As(err, &at)
}

// errDiffers says that a directory has to be unpacked anew.
var errDiffers = errors.New("it is not what the archive holds")

// compareDir returns an error if a file of the archive is missing or different in dir. Files that the server itself has
// added there do not count.
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

// compareFile compares one file with the archive, in blocks of 64 KiB. bytesLeft bounds the decompressed bytes of all
// files together.
func compareFile(root *os.Root, f *zip.File, name string, bytesLeft *int64) error {
	// A link in the place of the file could lead anywhere.
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
		// Both blocks have the same length unless one of the files ends.
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
