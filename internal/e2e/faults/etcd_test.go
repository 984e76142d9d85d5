package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// etcd writes Events directly to the etcd of a cluster, as another API server would. An API server takes 0.65 ms of a core to
// accept an Event, too much for 2,000 a second on two cores; forwarding one to its watches takes little.
type etcd struct {
	url    string
	client *http.Client
}

func newEtcd(t *testing.T, c *world.Cluster) *etcd {
	t.Helper()
	url, err := etcdURL(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.Dir(), "etcd-client.crt"), filepath.Join(c.Dir(), "etcd-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(c.Dir(), "etcd-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: authorities}, ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &etcd{url, &http.Client{Transport: transport}}
}

// etcdURL finds the etcd process with its data in a cluster's folder, and returns its URL.
func etcdURL(dir string) (string, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return "", err
	}
	for _, path := range all {
		line, _ := os.ReadFile(path) // it may have ended
		args := strings.Split(string(line), "\x00")
		found, url := false, ""
		for _, arg := range args {
			found = found || arg == "--data-dir="+filepath.Join(dir, "etcd")
			if rest, ok := strings.CutPrefix(arg, "--listen-client-urls="); ok {
				url = rest
			}
		}
		if found && url != "" {
			return url, nil
		}
	}
	return "", fmt.Errorf("no etcd process has its data in %s", dir)
}

var storage = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// create stores a new Event.
func (e *etcd) create(ctx context.Context, ev *corev1.Event) error {
	ev.APIVersion, ev.Kind = "v1", "Event"
	ev.UID, ev.CreationTimestamp = uuid.NewUUID(), metav1.NewTime(time.Now().Truncate(time.Second))
	var value bytes.Buffer
	if err := storage.Encode(ev, &value); err != nil {
		return err
	}
	put := field(nil, 1, []byte("/registry/events/"+ev.Namespace+"/"+ev.Name))
	return e.call(ctx, "/etcdserverpb.KV/Put", field(put, 2, value.Bytes()))
}

// field appends a field of bytes to a protobuf message.
func field(message []byte, number uint64, value []byte) []byte {
	message = binary.AppendUvarint(message, number<<3|2)
	return append(binary.AppendUvarint(message, uint64(len(value))), value...)
}

// call makes a gRPC call, and checks only the status of the answer.
func (e *etcd) call(ctx context.Context, method string, message []byte) error {
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) // not compressed
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+method, bytes.NewReader(append(body, message...)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	answer, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if status := answer.Trailer.Get("Grpc-Status"); status != "0" {
		return fmt.Errorf("etcd answers %s: status %q %s", answer.Status, status, answer.Trailer.Get("Grpc-Message"))
	}
	return nil
}
