package kubectl

import (
	"github.com/spf13/cobra"

	catalogue "github.com/threeport/threeport-agent/config/health"
	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/health/rules"
)

// ruleFiles is the value of --rules.
type ruleFiles []string

func (r *ruleFiles) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar((*[]string)(r), "rules", nil,
		"file or folder of health rules, which take precedence over the built-in ones; may be repeated")
}

// load returns the rules that take precedence over the built-in ones: those of the files, then the catalogue.
func (r ruleFiles) load() (health.Rules, error) {
	var all rules.Layers
	for _, path := range r {
		set, err := rules.Load(path)
		if err != nil {
			return nil, usage("--rules: %w", err)
		}
		all = append(all, set)
	}
	return append(all, catalogue.Rules()), nil
}
