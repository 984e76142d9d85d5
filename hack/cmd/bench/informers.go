package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// informersCommand runs the floor of memory: informers of the kinds that the agent watches, and nothing else.
const informersCommand = "informers"

// syncedText is printed when the informers have synced.
const syncedText = "all informers have synced"

// watchedKinds are the kinds that the agent watches for the workloads of the bench.
var watchedKinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "secrets"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

func runInformers(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(informersCommand, flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the cluster")
	metadataOnly := flags.Bool("metadata", false, "watch only the metadata of objects")
	_ = flags.Parse(args) // it exits on an error
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	start := typedInformers
	if *metadataOnly {
		start = metadataInformers
	}
	all, err := start(ctx, config)
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), all...) {
		return ctx.Err()
	}
	fmt.Fprintln(os.Stderr, syncedText)
	<-ctx.Done()
	return nil
}

// typedInformers keep whole objects, as the usual operator does.
func typedInformers(ctx context.Context, config *rest.Config) ([]cache.InformerSynced, error) {
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, time.Hour)
	var all []cache.InformerSynced
	for _, kind := range watchedKinds {
		informer, err := factory.ForResource(kind)
		if err != nil {
			return nil, err
		}
		all = append(all, informer.Informer().HasSynced)
	}
	factory.Start(ctx.Done())
	return all, nil
}

func metadataInformers(ctx context.Context, config *rest.Config) ([]cache.InformerSynced, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := metadatainformer.NewSharedInformerFactory(client, time.Hour)
	var all []cache.InformerSynced
	for _, kind := range watchedKinds {
		all = append(all, factory.ForResource(kind).Informer().HasSynced)
	}
	factory.Start(ctx.Done())
	return all, nil
}
