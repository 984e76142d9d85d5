package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
)

// maxCursor bounds a cursor, in bytes: the longest that a list gives has a cluster's name and UID and the start of a
// workload's name.
const maxCursor = 4096

// cursorEncoding is strict, so that one place in a list has one cursor.
var cursorEncoding = base64.RawURLEncoding.Strict()

// encodeCursor makes an opaque text of a place in a list: the key of the last row that was given.
func encodeCursor(key any) (string, error) {
	text, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	return cursorEncoding.EncodeToString(text), nil
}

// decodeCursor reads what encodeCursor made; [ErrCursor] if it is anything else. The key's fields are the sender's: they
// may be used as arguments of a query only.
func decodeCursor[K any](cursor string) (K, error) {
	var key K
	if len(cursor) > maxCursor {
		return key, ErrCursor
	}
	text, err := cursorEncoding.DecodeString(cursor)
	if err != nil {
		return key, ErrCursor
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&key); err != nil {
		return key, ErrCursor
	}
	if _, err := decoder.Token(); err != io.EOF {
		return key, ErrCursor
	}
	return key, nil
}
