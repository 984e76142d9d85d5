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
}

// Read returns a file, or the files of a directory that end in .yaml, .yml or .json and do not start with a dot. The version
// of the files is consistent. The files of a ConfigMap are links through the link ..data, which is replaced atomically.
func Read(path string) ([]File, error) {
	const tries = 3 // a new version may replace the one that is being read
	for i := 1; ; i++ {
		files, err := readOnce(path)
		if err == nil || i == tries || !errors.Is(err, fs.ErrNotExist) {
			return files, err
		}
	}
}

func readOnce(path string) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := readFile(path, MaxBytes)
		if err != nil {
			return nil, err
		}
		return []File{{path, data}}, nil
	}
	dir := path
	if version, err := filepath.EvalSymlinks(filepath.Join(path, "..data")); err == nil {
		dir = version
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []File
	left := int64(MaxBytes)
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			if err != nil {
				return nil, err
			}
			continue
		}
		data, err := readFile(filepath.Join(dir, name), left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(data))
		files = append(files, File{filepath.Join(path, name), data})
	}
	return files, nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // which file is the user's choice
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the file is only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: the rules exceed %d bytes in total", path, MaxBytes)
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
