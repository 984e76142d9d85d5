package notify

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// unreadable is the source of an object that cannot be read until it is readable.
type unreadable struct{ readable atomic.Bool }

func (s *unreadable) Load(context.Context) (runtime.Object, error) {
	if !s.readable.Load() {
		return nil, errors.New("no answer")
	}
	return &corev1.ConfigMap{}, nil
}

// The cause of a report that the agent cannot make yet is in the status until the report is accepted.
func TestNotifier_ObjectCannotBeRead_HasLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &unreadable{}
		b := newBench(DefaultConfig(), &script{answer: func(ctx context.Context, item outbox.Item) (outbox.Receipt, error) {
			_, err := load(ctx, item.Report.(observe.Operation))
			return outbox.Receipt{}, err
		}})
		b.box.Offer(observe.Operation{
			Attribution: target.Attribution{Instance: shop}, Source: source,
			Object: target.Identity{Ref: target.Ref{Kind: "ConfigMap", Namespace: "app", Name: "conf"}, UID: "uid"}, ResourceVersion: "1",
		})
		stop := b.start(t)
		synctest.Wait()
		const want = "not ready: read ConfigMap app/conf: no answer"
		if p := b.box.Progress(shop); p.LastError != want || p.Pending != 1 {
			t.Errorf("the progress is %+v, want a pending report with the error %q", p, want)
		}
		if b.logged("cannot be sent yet") != 1 || b.logged("no answer") != 1 {
			t.Errorf("logged is %q, want one line with the cause", b.logs)
		}
		source.readable.Store(true)
		time.Sleep(deferDelay)
		synctest.Wait()
		if p := b.box.Progress(shop); p.LastError != "" || p.Pending != 0 {
			t.Errorf("the progress is %+v, want no pending report and no error", p)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
