// Package image makes container images without Docker and without a registry: [Archive] writes one from files of
// this machine, [Target] builds one of the project's, as the Dockerfile says. It serves `make image` and the tests.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Spec is what an image consists of.
type Spec struct {
	Arch       string            // as GOARCH, such as "arm64"; empty for this machine's
	Files      map[string]string // absolute path in the image → file on this machine
	User       string            // as in a Dockerfile, such as "65532:65532"; empty for root
	Entrypoint []string
}

// Archive writes an image for Linux to a file, which `docker load` and
// `ctr images import` take, under the name ref, such as "localhost/pause:1". The file appears under its name when
// it is complete; its folder is created if need be.
//
// The image has one layer. Its files and folders belong to root and have no times. Files that are executable on
// this machine have the mode 0555, others 0444. So the same input gives the same bytes.
func Archive(path, ref string, spec Spec) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("name of image: %w", err)
	}
	img, err := build(spec)
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	if err := replace(path, func(w io.Writer) error { return tarball.Write(tag, img, w) }); err != nil {
		return fmt.Errorf("write image %s: %w", ref, err)
	}
	return nil
}

func build(spec Spec) (v1.Image, error) {
	var content bytes.Buffer
	if err := writeLayer(&content, spec.Files); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("add the layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configure: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", cmp.Or(spec.Arch, runtime.GOARCH)
	config.Config = v1.Config{User: spec.User, Entrypoint: spec.Entrypoint}
	return mutate.ConfigFile(img, config)
}

// writeLayer writes files as a tar, in the order of their names, each folder before what is in it.
func writeLayer(w io.Writer, files map[string]string) error {
	layer := tar.NewWriter(w)
	folders := map[string]bool{"/": true} // those that are written
	for _, target := range slices.Sorted(maps.Keys(files)) {
		if !path.IsAbs(target) || path.Clean(target) != target || target == "/" {
			return fmt.Errorf("the path %q is invalid: give an absolute path, such as /agent", target)
		}
		if err := writeFolders(layer, path.Dir(target), folders, files); err != nil {
			return err
		}
		if err := writeFile(layer, target, files[target]); err != nil {
			return fmt.Errorf("add %s: %w", target, err)
		}
	}
	return layer.Close()
}

// writeFolders writes a folder and those it is in, as far as they are not written.
func writeFolders(layer *tar.Writer, folder string, written map[string]bool, files map[string]string) error {
	if written[folder] {
		return nil
	}
	if _, ok := files[folder]; ok {
		return fmt.Errorf("%s is both a file and the folder of another file", folder)
	}
	if err := writeFolders(layer, path.Dir(folder), written, files); err != nil {
		return err
	}
	written[folder] = true
	return layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder[1:] + "/", Mode: 0o755})
}

func writeFile(layer *tar.Writer, target, source string) error {
	file, err := os.Open(source) //nolint:gosec // the caller says what the image consists of
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", source)
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: target[1:], Size: info.Size(), Mode: int64(mode(info.Mode()))}
	if err := layer.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(layer, file)
	return err
}

func mode(source fs.FileMode) fs.FileMode {
	if source&0o111 != 0 {
		return 0o555
	}
	return 0o444
}

// replace writes a file under another name in its folder, and moves it to its place when it is complete.
func replace(target string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".unfinished-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err := errors.Join(write(file), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), target)
}
