package rules

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/health/luascript"
	"github.com/threeport/threeport-agent/internal/reload"
)

const (
	// scriptFile is the name of a script in a folder GROUP/KIND, as in Argo CD's resource_customizations.
	scriptFile = "health.lua"
	// scriptKey begins the key of a script in the ConfigMap argocd-cm.
	scriptKey = "resource.customizations.health."
	// clockRecheck is when an object is assessed again if its script has read the time.
	clockRecheck = time.Minute
)

// isRuleFile selects the files of a folder of rules: YAML, scripts, and the folders of groups and kinds.
func isRuleFile(name string) bool {
	parts := strings.Split(name, "/")
	switch {
	case strings.HasSuffix(name, "/"):
		folder := parts[len(parts)-2]
		return len(parts) <= 3 && (kindName.MatchString(wildcard(folder)) || groupName.MatchString(wildcard(folder)))
	case len(parts) > 1:
		return parts[len(parts)-1] == scriptFile
	}
	return reload.YAML(name) || isScript(name)
}

func isScript(name string) bool {
	return strings.HasSuffix(name, ".lua") || strings.HasPrefix(path.Base(name), scriptKey)
}

// wildcard returns the name of a group or a kind in Argo CD's files, where _ is the wildcard.
func wildcard(name string) string {
	if name == "_" || strings.HasPrefix(name, "_.") {
		return "*" + name[1:]
	}
	return name
}

// scriptKind returns the group and the kind that the path of a script names.
func scriptKind(name string) (group, kind string, ok bool) {
	folders, base := path.Split(name)
	if base == scriptFile {
		parts := strings.Split(strings.Trim(folders, "/"), "/")
		kind = parts[len(parts)-1]
		if len(parts) > 1 {
			group = parts[len(parts)-2]
		}
	} else {
		kind = strings.TrimSuffix(strings.TrimPrefix(base, scriptKey), ".lua")
		if at := strings.LastIndexByte(strings.TrimSuffix(kind, "_"), '_'); at > 0 {
			group, kind = kind[:at], kind[at+1:]
		}
	}
	group, kind = wildcard(group), wildcard(kind)
	return group, kind, groupName.MatchString(group) && kindName.MatchString(kind)
}

// readScript compiles a script.
func readScript(file File) (*rule, *Error) {
	group, kind, ok := scriptKind(file.Path)
	if !ok {
		return nil, &Error{File: file.Name, Text: "the name of the script gives no group and kind: name it GROUP/KIND/health.lua, " +
			"GROUP_KIND.lua or " + scriptKey + "GROUP_KIND"}
	}
	r := &rule{name: ruleName(kind, group), file: file.Name, line: 1, column: 1, group: group, kinds: []string{kind}}
	script, err := luascript.Compile(path.Base(file.Path), file.Data)
	if err != nil {
		e := &Error{File: file.Name, Rule: r.name, Text: err.Error()}
		var syntax *luascript.SyntaxError
		if errors.As(err, &syntax) && syntax.Line > 0 {
			e.Line, e.Column = syntax.Line, 1
		}
		return nil, e
	}
	r.script = script
	return r, nil
}

// scriptStatus is the verdict for a status of Argo CD.
type scriptStatus struct {
	argo, reason, message string
	status                health.Status
}

var scriptStatuses = []scriptStatus{
	{argo: "Healthy", status: health.Healthy},
	{argo: "Progressing", status: health.Reconciling, reason: "Progressing", message: "is progressing"},
	{argo: "Degraded", status: health.Unhealthy, reason: "Degraded", message: "is degraded"},
	{argo: "Suspended", status: health.Healthy, reason: "Suspended", message: "is suspended"},
	{argo: "Missing", status: health.Down, reason: "Missing", message: "is missing"},
	{argo: "Unknown", status: health.Unknown, reason: "Unknown", message: "has an unknown health"},
}

// runScript assesses an object by the script. It reports whether the script failed.
func (r *rule) runScript(s subject) (a health.Assessment, failed bool) {
	result, err := r.script.Judge(s.object, s.now)
	if err != nil {
		return r.failed(s, "", err), true
	}
	i := slices.IndexFunc(scriptStatuses, func(known scriptStatus) bool { return known.argo == result.Status })
	if i < 0 {
		return r.failed(s, "", fmt.Errorf("status is %.40q, which Argo CD does not have", result.Status)), true
	}
	found := scriptStatuses[i]
	a = assess(found.status, found.reason, "")
	if found.message != "" {
		a.Message = s.name() + " " + found.message
		if detail := concise(result.Message); detail != "" {
			a.Message += ": " + detail
		}
	}
	if result.UsesTime {
		a.Recheck = s.now.Add(clockRecheck)
	}
	return a, false
}
