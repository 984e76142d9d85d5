package observe

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/redact"
)

// Redaction has the current redaction rules.
type Redaction interface{ Current() *redact.Rules }

// Source reads a large object as it is now, trimmed; nil if it no longer exists.
type Source interface {
	Load(ctx context.Context) (runtime.Object, error)
}

// Operation is the newest state of an object: its current version, or its deletion.
type Operation struct {
	Attribution target.Attribution
	Object      target.Identity
	// ResourceVersion is compared for equality only, and within one UID.
	ResourceVersion string
	Deleted         bool
	// Body is the listed object, trimmed; nil for a derived or deleted one. It is shared with the informer's cache and must
	// not be changed.
	Body runtime.Object
	// Source reads the listed object if it is too large to be kept. Body is nil then, until Load.
	Source Source `json:"-"`
	// Redaction has the rules for the definition; nil for the built-in rules.
	Redaction Redaction `json:"-"`
	// Trace is that of a sampled report; nil for others.
	Trace *Trace `json:"-"`
}

// Key has the UID: a resource that is deleted and created again is another object.
func (o Operation) Key() Key { return Key(string(o.OrderingKey()) + "/" + string(o.Object.UID)) }

// OrderingKey is the object's name within the workload, so that DELETED of one object comes before ADDED of the next one
// with the same name.
func (o Operation) OrderingKey() OrderingKey {
	r := o.Object.Ref
	return OrderingKey(fmt.Sprintf("operation/%s/%d/%s/%s/%s/%s",
		instanceKey(o.Attribution.Instance), o.Attribution.Resource.ID, r.Group, r.Kind, r.Namespace, r.Name))
}

// Version is the object's resource version, or "deleted".
func (o Operation) Version() string {
	if o.Deleted {
		return "deleted"
	}
	return o.ResourceVersion
}

// Instance returns the workload.
func (o Operation) Instance() target.Instance { return o.Attribution.Instance }

func (o Operation) String() string { return "operation of " + o.Object.String() }

// Load returns the operation with its body.
func (o Operation) Load(ctx context.Context) (Operation, error) {
	if o.Body != nil || o.Source == nil {
		return o, nil
	}
	body, err := o.Source.Load(ctx)
	if err != nil {
		return o, fmt.Errorf("read %s: %w", o.Object, err)
	}
	o.Body = body
	return o, nil
}

// Definition returns the object as JSON, or nil without a body. It trims the object again, by the current redaction rules: they
// may have changed since the object was read, and untrimmed input cannot leave the cluster.
func (o Operation) Definition() (json.RawMessage, error) {
	if o.Body == nil {
		return nil, nil
	}
	var rules *redact.Rules
	if o.Redaction != nil {
		rules = o.Redaction.Current()
	}
	body := o.Body.DeepCopyObject()
	trimDefinition(body, rules)
	out, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.Object.Ref, err)
	}
	return out, nil
}
