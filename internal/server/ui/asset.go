package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// asset is a file as it is sent.
type asset struct {
	name        string
	contentType string
	body        []byte
	zipped      []byte
	// hash of the body; entity tags are made of it.
	hash string
}

// contentTypes is used instead of the machine's table, which may lack JavaScript.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// newAsset compresses a file. It fails for an unknown type of file.
func newAsset(name string, body []byte) (asset, error) {
	contentType, ok := contentTypes[path.Ext(name)]
	if !ok {
		return asset{}, fmt.Errorf("asset %s: accepted are .css, .html, .js and .svg", name)
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return asset{}, fmt.Errorf("compress asset %s: %w", name, err)
	}
	if _, err := w.Write(body); err != nil {
		return asset{}, fmt.Errorf("compress asset %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return asset{}, fmt.Errorf("compress asset %s: %w", name, err)
	}
	return asset{name, contentType, body, zipped.Bytes(), hashOf(body)}, nil
}

// hashOf is short enough to read in a URL, and long enough to be unique.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:10])
}

// serve answers GET and HEAD, with 304 if the browser has the current version. It ignores a Range: thousands of ranges in one request
// would make an answer of thousands of parts.
func (a asset) serve(w http.ResponseWriter, req *http.Request) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Add("Vary", "Accept-Encoding")
	body, tag := a.body, a.hash
	if acceptsGzip(req.Header.Get("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		body, tag = a.zipped, a.hash+"-gzip"
	}
	header.Set("ETag", strconv.Quote(tag))
	req.Header.Del("Range")
	http.ServeContent(w, req, a.name, time.Time{}, bytes.NewReader(body))
}

// acceptsGzip parses an Accept-Encoding: a list of codings, where q=0 refuses one (RFC 9110, section 12.5.3).
func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(item), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, found := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			value, err := strconv.ParseFloat(q, 64)
			return !found || err != nil || value > 0
		}
	}
	return false
}
