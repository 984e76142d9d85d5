package store

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
)

// controllerAnnotations are prefixes of annotations that controllers of Kubernetes write. assets/difflist.js of package ui has the
// same list.
var controllerAnnotations = []string{
	"autoscaling.alpha.kubernetes.io/", "control-plane.alpha.kubernetes.io/", "deployment.kubernetes.io/",
	"deprecated.daemonset.template.generation", "endpoints.kubernetes.io/", "pv.kubernetes.io/", "volume.kubernetes.io/",
}

// specDigest is a digest of the part of a definition that people and their tools write. Versions with equal digests are one
// version of the spec. The part is everything but the status; of the metadata, it is the labels and annotations, without those of
// controllers. The definition is canonical JSON, and is not decoded, because that takes up to 50 times its size.
func specDigest(definition string) string {
	hash := sha256.New()
	w := bufio.NewWriter(hash)
	write := func(texts ...string) {
		for _, text := range texts {
			_, _ = w.WriteString(text) // a hash returns no error
		}
	}
	for key, value := range canonicaljson.Members(definition) {
		switch key {
		case `"status"`:
		case `"metadata"`:
			for key, value := range canonicaljson.Members(value) {
				switch key {
				case `"labels"`:
					write("metadata", key, value)
				case `"annotations"`:
					for key, value := range canonicaljson.Members(value) {
						if !isOfController(key) {
							write("annotation", key, value)
						}
					}
				}
			}
		default:
			write(key, value)
		}
	}
	_ = w.Flush()
	return hex.EncodeToString(hash.Sum(nil))
}

// isOfController reports whether controllers write the annotation with this quoted name.
func isOfController(annotation string) bool {
	for _, prefix := range controllerAnnotations {
		if strings.HasPrefix(annotation[1:], prefix) {
			return true
		}
	}
	return false
}

// creationTime returns metadata.creationTimestamp of a definition in microseconds since 1970; nil if there is none.
func creationTime(definition string) *int64 {
	for key, metadata := range canonicaljson.Members(definition) {
		if key != `"metadata"` {
			continue
		}
		for key, value := range canonicaljson.Members(metadata) {
			if key != `"creationTimestamp"` {
				continue
			}
			if at, err := time.Parse(`"`+time.RFC3339+`"`, value); err == nil {
				return new(at.UnixMicro())
			}
		}
	}
	return nil
}
