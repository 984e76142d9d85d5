package cluster

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// stageFiles are kwok's Stage documents, with two kinds of steps of our own: see stages/README.md.
//
//go:embed stages/*.yaml stages/*.tmpl
var stageFiles embed.FS

// eventStep writes an Event as the kubelet would. Message and Count are expressions of kwok's templates.
type eventStep struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   string `json:"count,omitempty"` // default 1
}

// statusStep patches a Pod's status as the kubelet would. Ready and Restarts are expressions of kwok's templates, State and
// LastState are templates; all are of the first container. Restarts and LastState stay as they are by default.
type statusStep struct {
	Phase     string `json:"phase"`
	Ready     string `json:"ready"`
	Restarts  string `json:"restarts,omitempty"`
	State     string `json:"state"`
	LastState string `json:"lastState,omitempty"`
	Every     bool   `json:"every,omitempty"`  // State holds for every container, else the others run
	Probed    bool   `json:"probed,omitempty"` // the Ready condition gets a new lastProbeTime
}

// renderStages returns the documents for kwok's --config, with our own kinds of steps replaced by kwok's.
func renderStages() ([]byte, error) {
	templates, err := template.New("").Delims("[[", "]]").
		Funcs(template.FuncMap{"indent": indent}).ParseFS(stageFiles, "stages/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parse templates of stages: %w", err)
	}
	files, err := stageFiles.ReadDir("stages")
	if err != nil {
		return nil, fmt.Errorf("list stages: %w", err)
	}
	var out bytes.Buffer
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".yaml") {
			continue
		}
		raw, err := stageFiles.ReadFile("stages/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("read stages: %w", err)
		}
		if err := renderFile(&out, templates, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return out.Bytes(), nil
}

// renderFile appends the documents of one file. They are JSON, which is YAML.
func renderFile(out *bytes.Buffer, templates *template.Template, raw []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		var stage struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Metadata   map[string]any `json:"metadata"`
			Spec       map[string]any `json:"spec"`
		}
		err := decoder.Decode(&stage)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decode: %w", err)
		}
		if steps, ok := stage.Spec["steps"].([]any); ok {
			for i := range steps {
				if steps[i], err = renderStep(templates, steps[i]); err != nil {
					return fmt.Errorf("stage %v, step %d: %w", stage.Metadata["name"], i, err)
				}
			}
		}
		doc, err := json.Marshal(stage)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		_, _ = fmt.Fprintf(out, "%s\n---\n", doc)
	}
}

// renderStep replaces a step of ours by kwok's, and leaves the others alone.
func renderStep(templates *template.Template, step any) (any, error) {
	raw, err := json.Marshal(step)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var own struct {
		Event  *eventStep  `json:"kubeletEvent"`
		Status *statusStep `json:"kubeletStatus"`
	}
	if err := json.Unmarshal(raw, &own); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var text bytes.Buffer
	switch {
	case own.Event != nil:
		if err := templates.ExecuteTemplate(&text, "event.tmpl", own.Event); err != nil {
			return nil, fmt.Errorf("render event: %w", err)
		}
		// "merge": the Event of a name that exists already is patched, so that its count grows.
		return map[string]any{"apply": map[string]any{"type": "merge", "template": text.String()}}, nil
	case own.Status != nil:
		if err := templates.ExecuteTemplate(&text, "status.tmpl", own.Status); err != nil {
			return nil, fmt.Errorf("render status: %w", err)
		}
		return map[string]any{"patch": map[string]any{
			"subresource": "status", "root": "status", "type": "strategic", "template": text.String(),
		}}, nil
	default:
		return step, nil
	}
}

// indent puts n spaces before every line but the first.
func indent(n int, text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+strings.Repeat(" ", n))
}
