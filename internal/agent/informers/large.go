package informers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The memory of listed objects in bytes. A workload lists up to 2,000 of them, and one may have 1.5 MB. A large object is fetched when it
// is reported. The others share listedBytes.
const (
	listedBytes      = 64 << 20
	minLarge         = 8 << 10
	maxLarge         = 64 << 10
	maxLargeFetched  = 16 << 20 // large objects that were fetched and may be needed again
	sizePerValue     = 16       // of an object in memory, besides its texts
	sizePerMapMember = 64
)

// isLarge reports whether an object takes too much memory to be cached as one of a number of listed objects.
func isLarge(obj runtime.Object, listed int) bool {
	return sizeOf(obj) > min(maxLarge, max(minLarge, listedBytes/max(1, listed)))
}

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
