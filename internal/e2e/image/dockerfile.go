package image

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// understood is the end of an error about what is not.
const understood = `understood are FROM scratch, COPY --from=STAGE /SOURCE /DESTINATION of one file, USER UID[:GID], and ENTRYPOINT ["PROGRAM", …]`

// FromDockerfile reads a target of a Dockerfile, which is a stage by its name, or the last one. The caller's function says
// which file of this machine stands for one of an earlier stage, by its path there; it need not exist yet. Other stages
// are not looked at, but for their names.
//
// A target has to be FROM scratch, and may have COPY from an earlier stage, USER and ENTRYPOINT. Whatever else
// is there, is an error with its line: an image that silently differs from Docker's is worse than none. For so
// little there is a parser here. BuildKit's own would move the versions of modules that the agent is linked
// with (17 of them when it was tried, v0.34), because tools and agent share a go.mod.
func FromDockerfile(path, target string, resolve func(stagePath string) (string, error)) (Spec, error) {
	instructions, err := parseFile(path)
	if err != nil {
		return Spec{}, err
	}
	spec, err := readTarget(instructions, target, resolve)
	if err != nil {
		return Spec{}, fmt.Errorf("%s:%w", path, err)
	}
	return spec, nil
}

func parseFile(path string) ([]instruction, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, fmt.Errorf("read Dockerfile: %w", err)
	}
	instructions, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return instructions, nil
}

// instruction is one of a Dockerfile, with its continued lines joined.
type instruction struct {
	line int    // its first
	name string // in upper case
	args string
}

// errorf is an error about the instruction. It begins with the line.
func (i instruction) errorf(format string, args ...any) error {
	return fmt.Errorf("%d: %s %s: %w", i.line, i.name, i.args, fmt.Errorf(format, args...))
}

// escapeDirective makes another character than the backslash continue lines.
var escapeDirective = regexp.MustCompile(`(?i)^#\s*escape\s*=`)

// parse splits a Dockerfile into its instructions.
func parse(text string) ([]instruction, error) {
	var all []instruction
	var current instruction
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		bare := strings.TrimSpace(line)
		if escapeDirective.MatchString(bare) {
			return nil, fmt.Errorf("%d: %s: is not understood: lines are continued with a backslash", number, bare)
		}
		if bare == "" || bare[0] == '#' { // also between continued lines
			continue
		}
		if current.line == 0 {
			current.line = number
		}
		part, continued := line, strings.HasSuffix(line, `\`) && !strings.HasSuffix(line, `\\`)
		if continued {
			part = strings.TrimSuffix(line, `\`)
		}
		current.args += part
		if !continued {
			all = append(all, current)
			current = instruction{}
		}
	}
	if current.line > 0 { // a backslash at the end of the file
		all = append(all, current)
	}
	for n := range all {
		i := &all[n]
		i.args = strings.TrimSpace(i.args)
		end := strings.IndexFunc(i.args+" ", unicode.IsSpace)
		i.name, i.args = strings.ToUpper(i.args[:end]), strings.TrimSpace(i.args[end:])
		if strings.Contains(i.args, "<<") && slices.Contains([]string{"RUN", "COPY", "ADD"}, i.name) {
			return nil, i.errorf("here-documents are not understood")
		}
	}
	return all, nil
}

// readTarget carries out the instructions of a target.
func readTarget(all []instruction, target string, resolve func(string) (string, error)) (Spec, error) {
	stage, earlier, err := findStage(all, target)
	if err != nil {
		return Spec{}, err
	}
	if !fromScratch.MatchString(stage[0].args) {
		return Spec{}, stage[0].errorf("this stage is not understood; %s", understood)
	}
	spec := Spec{Files: map[string]string{}}
	for _, i := range stage[1:] {
		var err error
		switch i.name {
		case "COPY":
			err = i.copyTo(spec.Files, earlier, resolve)
		case "USER":
			spec.User, err = i.user()
		case "ENTRYPOINT":
			spec.Entrypoint, err = i.program()
		default:
			err = i.errorf("is not understood; %s", understood)
		}
		if err != nil {
			return Spec{}, err
		}
	}
	return spec, nil
}

// findStage returns the instructions of a stage, which begin with its FROM, and the names of the stages before it. Without
// a name it is the last one.
func findStage(all []instruction, name string) (stage []instruction, earlier []string, err error) {
	var names []string
	var begins []int
	for n, i := range all {
		if i.name == "FROM" {
			names, begins = append(names, stageName(i)), append(begins, n)
		}
	}
	if len(begins) == 0 {
		return nil, nil, fmt.Errorf("1: there is no FROM; %s", understood)
	}
	found := len(names) - 1
	if name != "" {
		found = slices.IndexFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
	}
	if found < 0 {
		return nil, nil, fmt.Errorf("1: there is no stage %q; there are %q", name, names)
	}
	stage = all[begins[found]:]
	if found+1 < len(begins) {
		stage = all[begins[found]:begins[found+1]]
	}
	return stage, names[:found], nil
}

var fromScratch = regexp.MustCompile(`^scratch(\s+(?i:AS)\s+\S+)?$`)

// stageName is the name that a FROM gives its stage, if any.
func stageName(from instruction) string {
	words := strings.Fields(from.args)
	if n := len(words); n >= 3 && strings.EqualFold(words[n-2], "AS") {
		return words[n-1]
	}
	return ""
}

// plainPath is a path which stands for nothing but itself: no variable, pattern or quote.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9._/+-]*$`)

// copyTo adds the file that a COPY is about.
func (i instruction) copyTo(files map[string]string, stages []string, resolve func(string) (string, error)) error {
	words := strings.Fields(i.args)
	if len(words) != 3 || !plainPath.MatchString(words[1]) || !plainPath.MatchString(words[2]) {
		return i.errorf("is not understood; %s", understood)
	}
	stage, ok := strings.CutPrefix(words[0], "--from=")
	if !ok || stage == "" || !slices.ContainsFunc(stages, func(s string) bool { return strings.EqualFold(s, stage) }) {
		return i.errorf("this is not from an earlier stage, which are %q; %s", stages, understood)
	}
	source, destination := path.Clean(words[1]), words[2]
	if strings.HasSuffix(destination, "/") {
		destination += path.Base(source)
	}
	file, err := resolve(source)
	if err != nil {
		return i.errorf("%w", err)
	}
	files[path.Clean(destination)] = file
	return nil
}

// numericUser needs no /etc/passwd, which an image from scratch does not have.
var numericUser = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)

func (i instruction) user() (string, error) {
	if !numericUser.MatchString(i.args) {
		return "", i.errorf("is not understood; %s", understood)
	}
	return i.args, nil
}

func (i instruction) program() ([]string, error) {
	var words []string
	if err := json.Unmarshal([]byte(i.args), &words); err != nil || len(words) == 0 {
		return nil, i.errorf("is not understood, there is no shell; %s", understood)
	}
	return words, nil
}
