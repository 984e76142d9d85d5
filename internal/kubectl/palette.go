package kubectl

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/threeport/threeport-agent/internal/health"
)

// style has the parameters of the terminal control sequence SGR; empty for plain text.
type style string

// The styles in use.
const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "1;31"
	yellow style = "33"
	green  style = "32"
	cyan   style = "36"
	purple style = "35"
)

// styleOf returns the style of a status.
func styleOf(status health.Status) style {
	switch status {
	case health.Healthy:
		return green
	case health.Reconciling:
		return cyan
	case health.Unhealthy:
		return yellow
	case health.Down:
		return red
	case health.Unknown:
	}
	return purple
}

// palette paints text if it is true.
type palette bool

func (p palette) paint(s style, text string) string {
	if !p || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

func addColorFlag(cmd *cobra.Command, value *string) {
	cmd.PersistentFlags().StringVar(value, "color", colorAuto, "colors: auto (on a terminal, unless NO_COLOR is set), always or never")
	complete(cmd, "color", colorAuto, colorAlways, colorNever)
}

// newPalette decides whether to use colours on an output.
//
// Source: https://no-color.org: any value of NO_COLOR but the empty one means none.
func newPalette(choice string, out io.Writer) (palette, error) {
	switch choice {
	case colorAlways:
		return true, nil
	case colorNever:
		return false, nil
	case colorAuto:
		_, isTerminal := terminal(out)
		return palette(isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"), nil
	}
	return false, usage("--color: %q is not a choice: use auto, always or never", choice)
}

// terminal reports whether an output is a terminal, and its width; 0 if that is unknown.
func terminal(out io.Writer) (width int, ok bool) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return width, true
}
