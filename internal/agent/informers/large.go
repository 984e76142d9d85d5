package informers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The memory of listed objects. A workload lists up to 2,000 of them, and one may have 1.5 MB.
const (
	maxCachedObject  = 16 << 10 // a larger object is fetched when it is reported
	maxLargeFetched  = 16 << 20 // of the large objects that were fetched, and may be needed again
	sizePerValue     = 16       // of an object in memory, besides its texts
	sizePerMapMember = 64
)

// isLarge reports whether an object takes too much memory to be cached as one of many.
func isLarge(obj runtime.Object) bool { return sizeOf(obj) > maxCachedObject }

// sizeOf estimates the memory of an object in bytes.
func sizeOf(obj runtime.Object) int {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		return sizeOfValue(o.Object)
	case interface{ Size() int }: // as it is encoded
		return o.Size()
	}
	return 0
}

func sizeOfValue(value any) (size int) {
	switch v := value.(type) {
	case string:
		return sizePerValue + len(v)
	case []any:
		for _, item := range v {
			size += sizeOfValue(item)
		}
	case map[string]any:
		for name, member := range v {
			size += sizePerMapMember + len(name) + sizeOfValue(member)
		}
	}
	return size + sizePerValue
}
