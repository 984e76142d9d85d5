// Package helm builds the pinned releases of Helm, and runs them apart from the user's configuration.
package helm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// Build builds the Helm of a major version, 3 or 4, unless the user's cache has it. root is the path of the module's root.
func Build(ctx context.Context, root string, major int) (path string, err error) {
	module := fmt.Sprintf("helm.sh/helm/v%d", major)
	source := filepath.Join(root, "hack", fmt.Sprintf("helm%d", major))
	return cluster.Program{Source: source, Module: module, Package: module + "/cmd/helm"}.Build(ctx, os.Stderr)
}

// Environment has the variables with which Helm neither reads nor writes the user's configuration, but a folder.
func Environment(home string) []string {
	return []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
}
