package informers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cachedObject is the form in the cache of an object that a workload lists: its stub, and the whole object as JSON. As nested maps it takes
// three times the memory. It is decoded when it has changed, when it is assessed, and when its workload is compared.
type cachedObject struct {
	objectStub
	encoded []byte
}

func newCachedObject(o *unstructured.Unstructured) (*cachedObject, error) {
	encoded, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return &cachedObject{*newStub(o), encoded}, nil
}

// object returns the whole object.
func (o *cachedObject) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(o.encoded); err != nil { // newCachedObject encoded it
		panic(fmt.Sprintf("decode %s/%s: %v", o.GetNamespace(), o.GetName(), err))
	}
	return u
}
