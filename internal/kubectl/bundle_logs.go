package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Limits of the log of a container: the API server counts lines, and the plugin bytes. The last ones are kept.
const (
	maxLogLines = 50_000
	maxLogBytes = 5 << 20
)

// logSource reads the log of a container.
type logSource interface {
	open(ctx context.Context, pod *corev1.Pod, container string, previous bool) (io.ReadCloser, error)
}

// podLogs reads logs through the API server.
type podLogs struct{ client corev1client.CoreV1Interface }

func newPodLogs(cluster *connection) (*podLogs, error) {
	config, err := cluster.config()
	if err != nil {
		return nil, err
	}
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, clusterFailure("make a client", err)
	}
	return &podLogs{client}, nil
}

func (p *podLogs) open(ctx context.Context, pod *corev1.Pod, container string, previous bool) (io.ReadCloser, error) {
	return p.client.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: new(int64(maxLogLines)),
	}).Stream(ctx)
}

// addLogs adds the logs of the containers of some Pods: the current one, and that before the last restart.
func (b *bundle) addLogs(ctx context.Context, logs logSource, pods []corev1.Pod) error {
	for i := range pods {
		pod := &pods[i]
		restarts := map[string]int32{}
		for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			restarts[s.Name] = s.RestartCount
		}
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			if err := b.addLog(ctx, logs, pod, c.Name, false); err != nil {
				return err
			}
			if restarts[c.Name] == 0 {
				continue
			}
			if err := b.addLog(ctx, logs, pod, c.Name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLog adds a log. One that cannot be read is missing.
func (b *bundle) addLog(ctx context.Context, logs logSource, pod *corev1.Pod, container string, previous bool) error {
	name := fmt.Sprintf("logs/%s/%s/%s.log", pod.Namespace, pod.Name, container)
	if previous {
		name = fmt.Sprintf("logs/%s/%s/%s.previous.log", pod.Namespace, pod.Name, container)
	}
	text, cut, err := readLog(ctx, logs, pod, container, previous)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case apierrors.IsForbidden(err):
		b.missing = append(b.missing, name+": you lack get pods/log"+inNamespace(pod.Namespace))
	case err != nil:
		b.missing = append(b.missing, name+": "+err.Error())
	case cut:
		b.missing = append(b.missing, fmt.Sprintf("%s: all but the last %d MiB", name, maxLogBytes>>20))
	}
	if len(text) == 0 {
		return nil
	}
	return b.add(name, redactText(text))
}

func readLog(ctx context.Context, logs logSource, pod *corev1.Pod, container string, previous bool) (text []byte, cut bool, err error) {
	in, err := logs.open(ctx, pod, container, previous)
	if err != nil {
		return nil, false, err
	}
	defer in.Close() //nolint:errcheck // it is only read
	return lastLines(in, maxLogBytes)
}

// lastLines returns the last whole lines of a text, and whether it left out others. It keeps at most twice the limit in memory.
func lastLines(in io.Reader, limit int) (text []byte, cut bool, err error) {
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		text = append(text, chunk[:n]...)
		if len(text) > 2*limit {
			text, cut = append(text[:0], text[len(text)-limit:]...), true
		}
		if err == nil {
			continue
		}
		if len(text) > limit {
			text, cut = text[len(text)-limit:], true
		}
		if cut {
			if at := bytes.IndexByte(text, '\n'); at >= 0 {
				text = text[at+1:]
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return text, cut, err
	}
}
