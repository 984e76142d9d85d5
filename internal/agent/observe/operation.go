package observe

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Operation is the newest state of an object: it exists in a version, or it is deleted.
type Operation struct {
	Attribution target.Attribution
	Object      target.Identity
	// ResourceVersion is compared for equality only, and within one UID.
	ResourceVersion string
	Deleted         bool
	// Body is the listed object, trimmed; nil for a derived or deleted one. It is shared with the watch's
	// cache and must not be changed.
	Body runtime.Object
}

// Key tells incarnations apart: a resource is its UID, not its name.
func (o Operation) Key() Key { return Key(string(o.OrderingKey()) + "/" + string(o.Object.UID)) }

// OrderingKey is the object's name within the workload, so that DELETED of one incarnation comes before ADDED of
// the next.
func (o Operation) OrderingKey() OrderingKey {
	r := o.Object.Ref
	return OrderingKey(fmt.Sprintf("operation/%s/%d/%s/%s/%s/%s",
		instanceKey(o.Attribution.Instance), o.Attribution.Resource.ID, r.Group, r.Kind, r.Namespace, r.Name))
}

// Version is the object's resource version, or that it is deleted.
func (o Operation) Version() string {
	if o.Deleted {
		return "deleted"
	}
	return o.ResourceVersion
}

// Instance returns the workload.
func (o Operation) Instance() target.Instance { return o.Attribution.Instance }

func (o Operation) String() string { return "operation of " + o.Object.String() }

// Definition returns the object as JSON, or nil if the report carries none. What [Trim] removes is removed
// here too, so that nothing of it leaves the cluster whatever came in.
func (o Operation) Definition() (json.RawMessage, error) {
	if o.Body == nil {
		return nil, nil
	}
	body := o.Body.DeepCopyObject()
	Trim(body)
	out, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.Object.Ref, err)
	}
	return out, nil
}
