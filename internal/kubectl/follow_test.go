package kubectl

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// endOfList is the bookmark after the existing objects of a watch.
func endOfList() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	u.SetResourceVersion("1")
	u.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return u
}

func TestFollower_NoWorkloads_DrawsOnceSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		cluster := newConnection(&cobra.Command{})
		*cluster.flags.APIServer = "http://127.0.0.1:1" // for the Leases of workloads, and there are none
		p := &plugin{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, now: time.Now}
		f := &follower{o: &statusOptions{plugin: p, cluster: cluster}, changed: make(chan struct{}, 1), shown: map[string][]byte{}}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			workloads: "ThreeportWorkloadList",
		})
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			stream := watch.NewFakeWithChanSize(1, false)
			stream.Action(watch.Bookmark, endOfList())
			return true, stream, nil
		})
		if err := f.newInformer(client); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), redrawInterval/2)
		defer cancel()
		var wait sync.WaitGroup
		wait.Go(func() { f.informer.RunWithContext(ctx) })
		err := f.run(ctx)
		wait.Wait()
		if err != nil || !strings.HasPrefix(out.String(), "NAME") {
			t.Errorf("before the first tick, status --watch printed %q, error %v; want the titles", out.String(), err)
		}
	})
}
