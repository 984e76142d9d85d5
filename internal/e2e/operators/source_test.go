package operators

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestSource_Serves reads what Flux reads of the source.
func TestSource_Serves(t *testing.T) {
	s, err := startSource(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	tests := []struct{ reason, path, want string }{
		{reason: "the branches of the Git repository", path: "/git/app.git/info/refs?service=git-upload-pack", want: "refs/heads/main"},
		{reason: "the index of charts", path: "/charts/index.yaml", want: "web-1.0.0.tgz"},
		{reason: "the manifest of the artifact", path: "/v2/app/manifests/1.0.0", want: "vnd.cncf.flux.content"},
	}
	for _, tt := range tests {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", tt.reason, err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s: got %s, error %v: %s; want %s in it", tt.reason, response.Status, err, body, tt.want)
		}
	}
}
