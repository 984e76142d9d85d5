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

// page is where people look at the workloads, in a browser.
type page struct {
	url  string
	http *http.Client // of an administrator
	// token is what its user logs in with; empty if nobody has to.
	token string
}

// login makes a viewer of the user.
func (p *page) login(ctx context.Context) error {
	viewer := map[string]string{"name": "demo", "role": "viewer"}
	created, err := ask[struct{ Token string }](ctx, p, http.MethodPost, "/v0/tokens", viewer)
	p.token = created.Token
	return err
}

// hint tells how to get there.
func (p *page) hint() string {
	text := "The page: " + p.url
	if p.token == "" {
		return text
	}
	return text + "\n  sign in with " + p.token + "\n  (the browser will ask about the certificate: it is of an authority of the demo's own)"
}

// open shows the page in the user's browser, if there is a desktop that has one. That it could not is no error of the
// demo's: the address has been told.
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

// board is what it shows of each workload.
func (p *page) board(ctx context.Context) (map[threeport.Instance]threeport.Workload, error) {
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

// ask calls what the control-plane API has beside v0.
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
