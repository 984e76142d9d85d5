package reload

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MaxBytes bounds the total size of the files: four times the limit of a ConfigMap.
const MaxBytes = 4 << 20

// File is the text of a file of rules.
type File struct {
	Name string // for errors
	Data []byte
	// Path is the path of the file in its directory, with slashes. A file that was read alone has the last three parts.
	Path string
}

// Select reports whether a file of a directory is read, by its path in the directory. It is also called for subdirectories, with
// a slash at the end. Names that start with a dot are never read.
type Select func(path string) bool

// YAML selects the files that end in .yaml, .yml or .json, without those in subdirectories.
func YAML(path string) bool {
	return !strings.Contains(path, "/") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}

// Read returns a file, or the selected files of a directory. The version of the files is consistent. The files of a ConfigMap
// are links through the link ..data, which is replaced atomically.
func Read(path string, selected Select) ([]File, error) {
	const tries = 3 // a new version may replace the one that is being read
	for i := 1; ; i++ {
		files, err := readOnce(path, selected)
		if err == nil || i == tries || !errors.Is(err, fs.ErrNotExist) {
			return files, err
		}
	}
}

func readOnce(path string, selected Select) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := readFile(path, MaxBytes)
		if err != nil {
			return nil, err
		}
		parts := strings.Split(filepath.ToSlash(path), "/")
		return []File{{Name: path, Data: data, Path: strings.Join(parts[max(len(parts)-3, 0):], "/")}}, nil
	}
	dir := path
	if version, err := filepath.EvalSymlinks(filepath.Join(path, "..data")); err == nil {
		dir = version
	}
	d := directory{name: path, dir: dir, selected: selected, left: MaxBytes}
	if err := d.read(""); err != nil {
		return nil, err
	}
	return d.files, nil
}

// directory reads the selected files of a directory.
type directory struct {
	name, dir string
	selected  Select
	left      int64
	files     []File
}

// read reads a subdirectory, by its path with a slash at the end; the directory itself if it is empty.
func (d *directory) read(at string) error {
	entries, err := os.ReadDir(filepath.Join(d.dir, at))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := at + entry.Name()
		if strings.HasPrefix(entry.Name(), ".") || !d.selected(path) && !d.selected(path+"/") {
			continue
		}
		info, err := os.Stat(filepath.Join(d.dir, path))
		switch {
		case err != nil:
			return err
		case info.IsDir() && d.selected(path+"/"):
			if err := d.read(path + "/"); err != nil {
				return err
			}
			continue
		case info.IsDir() || !d.selected(path):
			continue
		}
		data, err := readFile(filepath.Join(d.dir, path), d.left)
		if err != nil {
			return err
		}
		d.left -= int64(len(data))
		d.files = append(d.files, File{Name: filepath.Join(d.name, path), Data: data, Path: path})
	}
	return nil
}

func readFile(path string, limit int64) ([]byte, error) {
	// Checked before it is opened: the opening of a FIFO waits for its writer.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	f, err := os.Open(path) //nolint:gosec // which file is the user's choice
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the file is only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: the files exceed %d bytes in total", path, MaxBytes)
	}
	return data, nil
}

// digest returns a hash that differs between versions of the files.
func digest(files []File) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		for _, part := range [][]byte{[]byte(f.Name), f.Data} {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(part)))
			h.Write(length[:])
			h.Write(part)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
