package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long the browser may take to start, and a condition on a page to come true: it only means that something
// hangs.
const patience = 5 * time.Minute

// ErrNoChromium says what to install.
var ErrNoChromium = errors.New("there is no chromium: install it with hack/browser-packages.sh")

// Chromium is a browser without a head. Make one with [Start], and [Chromium.Stop] it.
type Chromium struct {
	ctx  context.Context //nolint:containedctx // chromedp's handle of a browser is a context
	stop []context.CancelFunc
}

// Start starts the machine's chromium, with a profile of its own that goes when it stops.
func Start(ctx context.Context) (*Chromium, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en"),
		chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // chromium has none for root
	}
	allocated, stopAllocated := chromedp.NewExecAllocator(ctx, options...)
	browser, stopBrowser := chromedp.NewContext(allocated)
	c := &Chromium{ctx: browser, stop: []context.CancelFunc{stopBrowser, stopAllocated}}
	if err := chromedp.Do(browser); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start chromium: %w", err)
	}
	return c, nil
}

func find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoChromium
}

// Stop ends the browser and waits until it has.
func (c *Chromium) Stop() {
	for _, stop := range c.stop {
		stop()
	}
}

// Tab is a tab of a browser, with cookies and storage of its own. It is for one goroutine.
type Tab struct {
	ctx   context.Context //nolint:containedctx // chromedp's handle of a tab is a context
	close context.CancelFunc

	mu       sync.Mutex
	problems []string
	ignore   func(problem string) bool
}

// Open opens an empty tab.
func (c *Chromium) Open() (*Tab, error) {
	t := &Tab{ignore: func(string) bool { return false }}
	t.ctx, t.close = chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.hear))
	if err := chromedp.Do(t.ctx); err != nil {
		t.close()
		return nil, fmt.Errorf("open tab: %w", err)
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.close() }

// hear notes what must not happen on a page: exceptions, errors on the console (violations of the
// Content-Security-Policy are there too), and dialogs.
func (t *Tab) hear(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.note(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		t.note("exception: " + text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			t.note(fmt.Sprintf("console: %v", e.Args))
		}
	case *page.EventJavascriptDialogOpening:
		t.note("dialog: " + e.Message)
	}
}

func (t *Tab) note(problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ignore(problem) {
		t.problems = append(t.problems, problem)
	}
}

// Ignore leaves out problems that are expected from now on.
func (t *Tab) Ignore(expected func(problem string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ignore = expected
}

// Problems are what the browser complained of so far.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problems
}

// Do does steps one after the other.
func (t *Tab) Do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// Eval evaluates an expression of JavaScript, and awaits it if it is a promise.
func Eval[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return value, fmt.Errorf("evaluate %s: %w", expression, err)
	}
	return value, nil
}

// Until waits until a condition, an expression of JavaScript, holds; what it throws counts as false.
func (t *Tab) Until(condition string) error {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	// A poll in the page would end with it when it navigates.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("(() => { try { return Boolean("+condition+"); } catch { return false; } })()"))
		if err == nil && holds {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			text, _ := chromedp.Run(t.ctx, chromedp.Evaluate[string]("document.body.innerText.slice(0, 2000)"))
			return fmt.Errorf("wait until %s: %w; the page says:\n%s", condition, ctx.Err(), text)
		}
	}
}

// Media are the user's preferences that a page asks for.
type Media struct {
	Dark          bool
	ReducedMotion bool
	ForcedColors  bool
}

// Emulate sets the window's size and the user's preferences.
func (t *Tab) Emulate(width, height int64, media Media) error {
	choose := func(name string, on bool, value, otherwise string) *emulation.MediaFeature {
		if on {
			return &emulation.MediaFeature{Name: name, Value: value}
		}
		return &emulation.MediaFeature{Name: name, Value: otherwise}
	}
	_, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		choose("prefers-color-scheme", media.Dark, "dark", "light"),
		choose("prefers-reduced-motion", media.ReducedMotion, "reduce", "no-preference"),
		choose("forced-colors", media.ForcedColors, "active", "none"),
	}})
	if err != nil {
		return fmt.Errorf("emulate media: %w", err)
	}
	if err := t.Do(chromedp.EmulateViewport(width, height)); err != nil {
		return fmt.Errorf("emulate window: %w", err)
	}
	return nil
}

// Shot is what is in the window, as PNG.
func (t *Tab) Shot() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return nil, fmt.Errorf("take screenshot: %w", err)
	}
	return png, nil
}
