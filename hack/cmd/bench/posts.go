package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The floors of delivery: postsCommand posts Events one after another, and forwardCommand posts each Event that a watch receives. They
// do nothing else.
const (
	postsCommand   = "posts"
	forwardCommand = "forward"
)

const (
	// postedText is printed with the time that all posts took.
	postedText = "all Events were posted in "
	// watchingText is printed when the watch has begun.
	watchingText = "watching Events"
)

func runPosts(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(postsCommand, flag.ExitOnError)
	url := flags.String("url", "", "URL of the control-plane API")
	instance := flags.Int64("instance", 0, "ID of a WorkloadInstance")
	events := flags.Int("events", 0, "number of Events")
	_ = flags.Parse(args) // it exits on an error
	begin := time.Now()
	for i := range *events {
		if err := post(ctx, *url, *instance, fmt.Sprint("floor-", i)); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, postedText+time.Since(begin).String())
	<-ctx.Done() // the parent reads the CPU time
	return nil
}

func runForward(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(forwardCommand, flag.ExitOnError)
	url := flags.String("url", "", "URL of the control-plane API")
	instance := flags.Int64("instance", 0, "ID of a WorkloadInstance")
	kubeconfig := flags.String("kubeconfig", "", "how to reach the cluster")
	_ = flags.Parse(args) // it exits on an error
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	stream, err := watchNewEvents(ctx, client)
	if err != nil {
		return err
	}
	defer stream.Stop()
	fmt.Fprintln(os.Stderr, watchingText)
	for change := range stream.ResultChan() {
		ev, ok := change.Object.(*corev1.Event)
		if !ok || change.Type != watch.Added {
			continue
		}
		if err := post(ctx, *url, *instance, "floor-"+string(ev.UID)); err != nil {
			return err
		}
	}
	return errors.New("the watch ended")
}

// post posts an Event, and reads the answer.
func post(ctx context.Context, url string, instance int64, uid string) error {
	body := fmt.Sprintf(`{"RuntimeEventUID":%q,"Type":"Normal","Reason":"Pulled","Message":"Pod web-78874481-x: Container image \"registry.example/app:1\" `+
		`already present on machine","Timestamp":%q,"WorkloadInstanceID":%d}`, uid, time.Now().Format(time.RFC3339), instance)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v0/workload-events", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close() // it was only read
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("the answer is %s", answer.Status)
	}
	return err
}
