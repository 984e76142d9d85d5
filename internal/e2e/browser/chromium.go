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

// waitTimeout limits the start of the browser and the wait for a condition on a page. Only something that hangs exceeds it.
const waitTimeout = 5 * time.Minute

// ErrNoChromium means that chromium is not installed.
var ErrNoChromium = errors.New("chromium is missing: install it with `make browser-packages`")

// Chromium is a headless browser. [Start] starts one; call [Chromium.Stop] at the end.
type Chromium struct {
	ctx  context.Context //nolint:containedctx // chromedp's handle of a browser is a context
	stop []context.CancelFunc
}

// Start starts the installed chromium with a temporary profile.
func Start(ctx context.Context) (*Chromium, error) {
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en"),
		chromedp.WSURLReadTimeout(waitTimeout))
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

// findChromium prefers the build without windows, which has the same engine and needs a third of the CPU time.
func findChromium() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoChromium
}

// Stop stops the browser, and waits for its end.
func (c *Chromium) Stop() {
	for _, stop := range c.stop {
		stop()
	}
}

// Tab is a tab of a browser with separate cookies and storage. It is not safe for concurrent use.
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
	t.ctx, t.close = chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.recordProblem))
	if err := chromedp.Do(t.ctx); err != nil {
		t.close()
		return nil, fmt.Errorf("open tab: %w", err)
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.close() }

// recordProblem records problems of a page: exceptions, errors on the console (including violations of the
// Content-Security-Policy), and dialogs.
func (t *Tab) recordProblem(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.addProblem(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		t.addProblem("exception: " + text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			t.addProblem(fmt.Sprintf("console: %v", e.Args))
		}
	case *page.EventJavascriptDialogOpening:
		t.addProblem("dialog: " + e.Message)
	}
}

func (t *Tab) addProblem(problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ignore(problem) {
		t.problems = append(t.problems, problem)
	}
}

// Ignore excludes expected problems from now on.
func (t *Tab) Ignore(expected func(problem string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ignore = expected
}

// Problems returns the recorded problems so far.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problems
}

// Do executes actions one after the other.
func (t *Tab) Do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, waitTimeout)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// Eval evaluates a JavaScript expression, and awaits a promise.
func Eval[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, waitTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return value, fmt.Errorf("evaluate %s: %w", expression, err)
	}
	return value, nil
}

// Until waits until a JavaScript expression is true. An exception counts as false.
func (t *Tab) Until(condition string) error {
	ctx, cancel := context.WithTimeout(t.ctx, waitTimeout)
	defer cancel()
	// The page polls for a second, because a request for each try would take both programs most of their time. A navigation ends
	// that with an error.
	poll := `(async () => {
		for (let tries = 0; tries < 50; tries++) {
			try { if (` + condition + `) return true; } catch {}
			await new Promise((resolve) => setTimeout(resolve, 20));
		}
		return false;
	})()`
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](poll, chromedp.EvalAwaitPromise))
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

// Media are user preferences in media queries.
type Media struct {
	Dark          bool
	ReducedMotion bool
	ForcedColors  bool
}

// Emulate sets the size of the window and the user's preferences.
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

// Screenshot returns a screenshot of the window as PNG.
func (t *Tab) Screenshot() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, waitTimeout)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return nil, fmt.Errorf("take screenshot: %w", err)
	}
	return png, nil
}
