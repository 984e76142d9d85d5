package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entry is what a layer says of a file or a folder.
type entry struct {
	Name     string
	Mode     int64
	UID, GID int
	Content  string
}

// entries are those of an image's only layer, in their order.
func entries(t *testing.T, img v1.Image) []entry {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d layers, %v, want one", len(layers), err)
	}
	uncompressed, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer uncompressed.Close() //nolint:errcheck // it is only read
	content, err := io.ReadAll(uncompressed)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if sum, _, err := v1.SHA256(bytes.NewReader(content)); err != nil || !slices.Equal(config.RootFS.DiffIDs, []v1.Hash{sum}) {
		t.Errorf("the config has the layers %v, want %s (%v)", config.RootFS.DiffIDs, sum, err)
	}
	var all []entry
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime.Unix() > 0 {
			t.Errorf("%s has the time %s, want none", header.Name, header.ModTime)
		}
		all = append(all, entry{Name: header.Name, Mode: header.Mode, UID: header.Uid, GID: header.Gid, Content: string(text)})
	}
}

// read returns the image of an archive, which has to be under ref there.
func read(t *testing.T, path, ref string) (v1.Image, *v1.ConfigFile) {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return img, config
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestArchive_MatchesSpec(t *testing.T) {
	dir := t.TempDir()
	program, data := filepath.Join(dir, "program"), filepath.Join(dir, "data")
	write(t, program, "run", 0o700)
	write(t, data, "read", 0o660)
	spec := Spec{
		Files:      map[string]string{"/usr/bin/program": program, "/etc/data": data, "/usr/bin/other": program, "/zero": data},
		User:       "1:2",
		Entrypoint: []string{"/usr/bin/program", "--flag"},
	}
	path := filepath.Join(dir, "new", "image.tar")
	if err := Archive(path, "localhost/test:1", spec); err != nil {
		t.Fatal(err)
	}
	img, config := read(t, path, "localhost/test:1")
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("the image is for %s/%s", config.OS, config.Architecture)
	}
	if want := (v1.Config{User: "1:2", Entrypoint: []string{"/usr/bin/program", "--flag"}}); !reflect.DeepEqual(config.Config, want) {
		t.Errorf("config %+v, want %+v", config.Config, want)
	}
	want := []entry{
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/data", Mode: 0o444, Content: "read"},
		{Name: "usr/", Mode: 0o755},
		{Name: "usr/bin/", Mode: 0o755},
		{Name: "usr/bin/other", Mode: 0o555, Content: "run"},
		{Name: "usr/bin/program", Mode: 0o555, Content: "run"},
		{Name: "zero", Mode: 0o444, Content: "read"},
	}
	if got := entries(t, img); !slices.Equal(got, want) {
		t.Errorf("the layer has\n%+v\nwant\n%+v", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the archive is %v, %v, want that all may read it", info, err)
	}
}

func TestArchive_SameInput_SameBytes(t *testing.T) {
	var archives [][]byte
	for _, mode := range []fs.FileMode{0o755, 0o711} { // other files, other times, other modes
		dir := t.TempDir()
		spec := Spec{Files: map[string]string{}, Entrypoint: []string{"/a"}}
		for _, n := range []string{"a", "b", "c", "d"} {
			file := filepath.Join(dir, n)
			write(t, file, strings.Repeat(n, 100_000), mode)
			spec.Files["/folder-"+n+"/"+n] = file
		}
		path := filepath.Join(dir, "image.tar")
		for range 2 { // also over what is there
			if err := Archive(path, "localhost/test:1", spec); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, raw)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the archives differ")
	}
}

func TestArchive_InvalidFiles_Refuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "x", 0o600)
	for _, tc := range []struct {
		reason string
		ref    string
		files  map[string]string
		want   string
	}{
		{reason: "an invalid name", ref: "Not A Name", files: map[string]string{"/a": file}, want: "name of image"},
		{reason: "a relative path", ref: "a:1", files: map[string]string{"a": file}, want: `the path "a" is invalid`},
		{reason: "a path above the root", ref: "a:1", files: map[string]string{"/../a": file}, want: `the path "/../a" is invalid`},
		{reason: "the root", ref: "a:1", files: map[string]string{"/": file}, want: `the path "/" is invalid`},
		{
			reason: "a path below a file", ref: "a:1", files: map[string]string{"/a": file, "/a/b/c": file},
			want: "/a is both a file and the folder of another file",
		},
		{reason: "a missing file", ref: "a:1", files: map[string]string{"/a": file + "-not"}, want: "file-not"},
		{reason: "a folder", ref: "a:1", files: map[string]string{"/a": dir}, want: "not a regular file"},
	} {
		path := filepath.Join(dir, "image.tar")
		err := Archive(path, tc.ref, Spec{Files: tc.files})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "image.tar*")); err != nil || len(left) > 0 {
		t.Errorf("Archive left the files %v (%v)", left, err)
	}
}

func TestReplace_WriteFails_KeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "image.tar")
	write(t, path, "before", 0o600)
	broken := errors.New("disk broke")
	err := replace(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of writing", err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "before" {
		t.Errorf("the file contains %q (%v), want %q", raw, err, "before")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the folder has the files %v (%v), want one", files, err)
	}
}
