//go:build !linux

package journal

import "os"

func syncData(file *os.File) error { return file.Sync() }
