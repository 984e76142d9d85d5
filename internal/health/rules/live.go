package rules

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/reload"
)

// Load reads the rules and scripts of a file or a directory, as [reload.Read] does. Invalid rules are an error of type Errors.
func Load(path string) (*Set, error) {
	files, err := reload.Read(path, isRuleFile)
	if err != nil {
		return nil, err
	}
	return Parse(files...)
}

// Live holds the current rules of a file or a directory. It is safe for concurrent use.
type Live struct {
	files   *reload.Live[*Set]
	metrics *Metrics
}

// Open reads rules. Invalid rules are an error here; later, Run keeps the previous rules instead.
func Open(path string, metrics *Metrics, log logr.Logger) (*Live, error) {
	files, err := reload.Open(path, isRuleFile, Parse, metrics, log)
	if err != nil {
		return nil, err
	}
	return &Live{files, metrics}, nil
}

// Judge assesses an object by the current rules.
func (l *Live) Judge(kind schema.GroupKind, object map[string]any, now time.Time) (health.Assessment, bool) {
	a, d := l.files.Current().Decide(kind, object, now)
	if d != nil && d.Failed {
		l.metrics.failed(a.Reason)
	}
	return a, d != nil
}

// Covers reports whether the current rules may have one for a kind.
func (l *Live) Covers(kind schema.GroupKind) bool { return l.files.Current().Covers(kind) }

// Run reloads the rules when they change, until the context ends. It calls changed after each reload, never concurrently.
func (l *Live) Run(ctx context.Context, changed func()) { l.files.Run(ctx, changed) }
