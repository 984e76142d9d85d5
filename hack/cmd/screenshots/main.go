// Command screenshots creates the screenshots of the page in docs/images. It starts a control plane, sends it the sample of
// package browser as agents do, and opens the page in chromium.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/threeport/threeport-agent/internal/e2e/browser"
)

// maxPictureBytes is the maximum size of a picture in bytes: the repository keeps all versions.
const maxPictureBytes = 200 << 10

// picture is a view of the page.
type picture struct {
	name          string
	width, height int64
	dark          bool
	// path is the path of the page; empty for the workload that shows everything.
	path string
	// complete is a JavaScript condition that becomes true when the view is complete.
	complete string
}

const (
	listShown     = "document.querySelectorAll('.grid-list .row').length > 10 && document.querySelector('#live').dataset.state === 'live' && !document.querySelector('.changed')"
	workloadShown = "document.querySelectorAll('.line').length > 10 && document.querySelectorAll('.event').length > 10"
)

var pictures = []picture{
	{name: "board-light", width: 1360, height: 760, path: "/", complete: listShown},
	{name: "board-dark", width: 1360, height: 760, dark: true, path: "/", complete: listShown},
	{name: "workload-light", width: 1360, height: 1640, complete: workloadShown},
	{name: "workload-dark", width: 1360, height: 1640, dark: true, complete: workloadShown},
	{name: "board-phone", width: 360, height: 720, path: "/", complete: "document.querySelectorAll('.grid-list .row').length > 3"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := flag.String("out", filepath.Join("docs", "images"), "folder for the pictures")
	flag.Parse()
	if err := run(ctx, *out); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1) //nolint:gocritic // stop only restores signal handling, which ends here anyway
	}
}

func run(ctx context.Context, out string) (err error) {
	folder, err := os.MkdirTemp("", "screenshots-")
	if err != nil {
		return fmt.Errorf("make folder for the rows: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()

	api := browser.NewAPI(filepath.Join(folder, "rows.db"), time.Hour, slog.New(slog.DiscardHandler))
	if err := api.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Stop()) }()
	instances, err := browser.Post(ctx, api.URL, browser.Sample(time.Now()))
	if err != nil {
		return err
	}
	chromium, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer chromium.Stop()
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("make folder for the pictures: %w", err)
	}
	everything := instances[browser.Checkout]
	for _, p := range pictures {
		if p.path == "" {
			p.path = fmt.Sprintf("/workloads/%s/%d", everything.Type, int64(everything.ID))
		}
		if err := p.capture(chromium, api.URL, out); err != nil { //nolint:contextcheck // the browser was started with ctx, and ends with it
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// capture takes a screenshot of a page that no longer changes.
func (p picture) capture(chromium *browser.Chromium, url, out string) error {
	tab, err := chromium.Open()
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := tab.Emulate(p.width, p.height, browser.Media{Dark: p.dark, ReducedMotion: true}); err != nil {
		return err
	}
	if err := tab.Do(chromedp.Navigate(url + p.path)); err != nil {
		return fmt.Errorf("open page: %w", err)
	}
	if err := tab.Until(p.complete); err != nil {
		return err
	}
	raw, err := tab.Screenshot()
	if err != nil {
		return err
	}
	small, err := withPalette(raw)
	if err != nil {
		return err
	}
	if len(small) > maxPictureBytes {
		return fmt.Errorf("the picture has %d bytes, the limit is %d", len(small), maxPictureBytes)
	}
	if err := os.WriteFile(filepath.Join(out, p.name+".png"), small, 0o644); err != nil { //nolint:gosec // pictures are public
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// withPalette encodes a picture with a palette: a page has few colours, and the colours at the edges of letters are similar.
func withPalette(raw []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read picture: %w", err)
	}
	small := image.NewPaletted(full.Bounds(), paletteOf(full))
	draw.Draw(small, full.Bounds(), full, full.Bounds().Min, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
		return nil, fmt.Errorf("write picture: %w", err)
	}
	return b.Bytes(), nil
}

// paletteSize is the size of a PNG palette.
const paletteSize = 256

// paletteOf returns the most frequent colours of a picture. It begins with the most frequent one of each hue and shade, so that
// small coloured items keep their colour.
func paletteOf(picture image.Image) color.Palette {
	count := map[color.RGBA]int{}
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			count[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}]++ //nolint:gosec // 16 bits, of which 8 are left
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette, rest color.Palette
	seen := map[[3]uint8]bool{}
	for _, c := range all {
		shade := [3]uint8{c.R >> 5, c.G >> 5, c.B >> 5}
		if seen[shade] {
			rest = append(rest, c)
			continue
		}
		seen[shade] = true
		palette = append(palette, c)
	}
	palette = append(palette, rest...)
	return palette[:min(len(palette), paletteSize)]
}
