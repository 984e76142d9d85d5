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

// page is the page of the control-plane API for the browser.
type page struct {
	url  string
	http *http.Client // of an administrator
	// token is the token of the user; empty without authentication.
	token string
}

// login creates a token with the role viewer.
func (p *page) login(ctx context.Context) error {
	viewer := map[string]string{"name": "demo", "role": "viewer"}
	created, err := ask[struct{ Token string }](ctx, p, http.MethodPost, "/v0/tokens", viewer)
	p.token = created.Token
	return err
}

// hint prints the address of the page.
func (p *page) hint() string {
	text := "The page: " + p.url
	if p.token == "" {
		return text
	}
	return text + "\n  sign in with " + p.token + "\n  (the browser will ask about the certificate: it is of an authority of the demo's own)"
}

// open opens the page in the user's browser if there is a desktop. A failure is no error, because the address was printed.
func (p *page) open(ctx context.Context) {
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
func (p *page) workloads(ctx context.Context) (map[threeport.Instance]threeport.Workload, error) {
	list, err := ask[threeport.List[threeport.Workload]](ctx, p, http.MethodGet, "/v0/workloads?size=100", nil)
	if err != nil {
		return nil, err
	}
	rows := map[threeport.Instance]threeport.Workload{}
	for _, row := range list.Items {
		rows[row.Instance] = row
	}
	return rows, nil
}

// ask sends a request to an endpoint of the control-plane API outside v0.
func ask[T any](ctx context.Context, p *page, method, path string, body any) (answer T, err error) {
	request := resty.NewWithClient(p.http).R().SetContext(ctx).SetResult(&answer)
	if body != nil {
		request.SetBody(body)
	}
	got, err := request.Execute(method, p.url+path)
	if err == nil && !got.IsSuccess() {
		err = errors.New(got.Status())
	}
	if err != nil {
		return answer, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return answer, nil
}
