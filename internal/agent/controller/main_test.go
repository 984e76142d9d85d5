package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/config/crd"
	"github.com/threeport/threeport-agent/internal/testing/apiserver"
)

// shared is the API server of all tests, with the CRD installed.
var shared struct {
	api    *apiserver.Server
	scheme *runtime.Scheme
	client client.WithWatch
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := runMain(m)
	if err == nil {
		err = leaks()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		code = 1
	}
	os.Exit(code)
}

// leaks returns an error if goroutines still run after a time that suffices on a busy machine.
func leaks() error {
	for begin := time.Now(); ; {
		if err := goleak.Find(); err == nil || time.Since(begin) > 30*time.Second { // Find waits itself for a moment.
			return err
		}
	}
}

func runMain(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	shared.api, err = apiserver.Start()
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := shared.api.Stop(); err == nil {
			err = stopErr
		}
	}()
	shared.scheme = runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(shared.scheme), eventsv1.AddToScheme(shared.scheme)); err != nil {
		return 1, err
	}
	if err := install(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// install applies the generated CRD and waits until it is served.
func install(ctx context.Context) error {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crd.Manifest, &definition.Object); err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(shared.api.Config())
	if err != nil {
		return err
	}
	crds := dyn.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	workloads := dyn.Resource(v1alpha1.GroupVersion.WithResource("threeportworkloads"))
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := workloads.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the CRD: %w", err)
	}
	shared.client, err = client.NewWithWatch(shared.api.Config(), client.Options{Scheme: shared.scheme})
	return err
}
