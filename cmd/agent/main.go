// Command agent reports the status of deployed workloads to a control-plane API.
package main

import (
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	o := newOptions(flag.CommandLine)
	flag.Parse()
	if o.showVersion {
		fmt.Println(versionText())
		return
	}
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "agent: %v\nRun 'agent --help' for the flags.\n", err)
		os.Exit(2)
	}
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		ctrl.Log.Error(err, "The agent failed")
		os.Exit(1)
	}
}
