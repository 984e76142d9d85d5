package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"

	"github.com/go-resty/resty/v2"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// ui is the web UI of the control-plane API.
type ui struct {
	url  string
	http *http.Client // of an administrator
	// token is the token of the user; empty without authentication.
	token string
}

// login creates a token with the role viewer.
func (p *ui) login(ctx context.Context) error {
	viewer := map[string]string{"name": "demo", "role": "viewer"}
	created, err := request[struct{ Token string }](ctx, p, http.MethodPost, "/v0/tokens", viewer)
	p.token = created.Token
	return err
}

// loginHint returns the address of the web UI, and how to sign in.
func (p *ui) loginHint() string {
	text := "The web UI: " + p.url
	if p.token == "" {
		return text
	}
	return text + "\n  sign in with " + p.token + "\n  (the browser warns about the certificate, because the demo signed it)"
}

// open opens the web UI in the user's browser if there is a desktop. A failure is no error, because the address was printed.
func (p *ui) open(ctx context.Context) {
	opener := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		opener = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return
	}
	if path, err := exec.LookPath(opener); err == nil {
		_ = exec.CommandContext(ctx, path, p.url).Run() //nolint:gosec // the opener of the desktop, with our own address
	}
}

// workloads returns the rows of the workload list.
func (p *ui) workloads(ctx context.Context) (map[threeport.Instance]threeport.Workload, error) {
	list, err := request[threeport.List[threeport.Workload]](ctx, p, http.MethodGet, "/v0/workloads?size=100", nil)
	if err != nil {
		return nil, err
	}
	rows := map[threeport.Instance]threeport.Workload{}
	for _, row := range list.Items {
		rows[row.Instance] = row
	}
	return rows, nil
}

// request sends a request to an endpoint of the control-plane API outside v0.
func request[T any](ctx context.Context, p *ui, method, path string, body any) (answer T, err error) {
	req := resty.NewWithClient(p.http).R().SetContext(ctx).SetResult(&answer)
	if body != nil {
		req.SetBody(body)
	}
	got, err := req.Execute(method, p.url+path)
	if err == nil && !got.IsSuccess() {
		err = errors.New(got.Status())
	}
	if err != nil {
		return answer, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return answer, nil
}
