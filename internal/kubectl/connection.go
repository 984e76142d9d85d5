package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// workloads is the resource of ThreeportWorkloads.
var workloads = v1alpha1.GroupVersion.WithResource("threeportworkloads")

// Limits of requests per second. A tree needs several for each kind and namespace.
const (
	clientQPS   = 50
	clientBurst = 300
)

// connection creates clients for the cluster from flags.
type connection struct {
	flags *genericclioptions.ConfigFlags
	clock serverClock
}

// newConnection adds kubectl's connection flags to a command. The help hides rare ones.
func newConnection(cmd *cobra.Command) *connection {
	c := &connection{flags: genericclioptions.NewConfigFlags(true)}
	c.flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = clientQPS, clientBurst
		config.Wrap(c.clock.wrap)
		config.WarningHandler = rest.NoWarnings{} // they are about API versions that the user cannot change here
		return config
	}
	c.flags.AddFlags(cmd.Flags())
	shown := map[string]string{
		"kubeconfig": "kubeconfig file; the default is that of kubectl: $KUBECONFIG, then ~/.kube/config",
		"context":    "context of the kubeconfig",

		"namespace":       "namespace of objects that are given without one",
		"request-timeout": "how long a request may take, such as 10s; 0 for any time",
		"as":              "user to impersonate",
	}
	own := cmd.LocalNonPersistentFlags()
	for _, name := range []string{
		"kubeconfig", "context", "namespace", "request-timeout", "as", "cache-dir", "client-certificate", "client-key", "token",
		"as-uid", "as-group", "as-user-extra", "cluster", "user", "server", "tls-server-name", "insecure-skip-tls-verify",
		"certificate-authority", "disable-compression", "proxy-url",
	} {
		if flag := own.Lookup(name); flag != nil {
			flag.Hidden = shown[name] == ""
			flag.Usage = shown[name]
		}
	}
	for flag, values := range map[string]func(*cobra.Command) []string{"context": c.contexts, "namespace": c.namespaces} {
		err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return values(cmd), cobra.ShellCompDirectiveNoFileComp
		})
		if err != nil {
			panic(err) // the flag does not exist, which is a programming error
		}
	}
	return c
}

// connectionHelp ends the help of commands that use the cluster.
const connectionHelp = "\n\nThe other flags of kubectl for connections work too; `kubectl options` lists them."

// config returns the configuration of the clients.
func (c *connection) config() (*rest.Config, error) {
	if err := c.checkKubeconfig(); err != nil {
		return nil, err
	}
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, clusterFailure("read the kubeconfig", err)
	}
	return config, nil
}

// checkKubeconfig returns an error if $KUBECONFIG decides which cluster is asked and none of its files exists. Without this
// check client-go would ask localhost:8080.
func (c *connection) checkKubeconfig() error {
	files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if files == "" || *c.flags.KubeConfig != "" || *c.flags.APIServer != "" {
		return nil
	}
	for _, file := range filepath.SplitList(files) {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the user's own variable
			return nil
		}
	}
	return &failure{exitCluster, fmt.Errorf("read the kubeconfig: $KUBECONFIG is %s, and there is no such file", files)}
}

func (c *connection) dynamic() (dynamic.Interface, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, clusterFailure("make a client", err)
	}
	return client, nil
}

func (c *connection) metadata() (metadata.Interface, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, clusterFailure("make a client", err)
	}
	return client, nil
}

// namespace returns the namespace for objects that are named without one.
func (c *connection) namespace() (string, error) {
	if err := c.checkKubeconfig(); err != nil {
		return "", err
	}
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", clusterFailure("read the kubeconfig", err)
	}
	return namespace, nil
}

// workloads returns all ThreeportWorkloads, or the one with a name.
func (c *connection) workloads(ctx context.Context, name string) ([]v1alpha1.ThreeportWorkload, error) {
	client, err := c.dynamic()
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(workloads).List(ctx, selectName(name))
	if err != nil {
		return nil, workloadsFailure(err)
	}
	if name != "" && len(list.Items) == 0 {
		all, err := client.Resource(workloads).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, workloadsFailure(err)
		}
		return nil, noSuchWorkload(name, all.Items)
	}
	out := make([]v1alpha1.ThreeportWorkload, len(list.Items))
	for i := range list.Items {
		if out[i], err = decodeWorkload(&list.Items[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxSuggestions limits the names that an error suggests.
const maxSuggestions = 3

// noSuchWorkload returns the error for a name without a ThreeportWorkload. It suggests the similar names of others.
func noSuchWorkload(name string, others []unstructured.Unstructured) error {
	names := make([]string, len(others))
	for i := range others {
		names[i] = others[i].GetName()
	}
	if similar := similarTo(name, names); similar != "" {
		return usage("there is no ThreeportWorkload %q: did you mean %s?", name, similar)
	}
	return usage("there is no ThreeportWorkload %q: see `kubectl threeport status`", name)
}

// similarTo returns the names that are similar to one, for an error that suggests them; empty if none is.
func similarTo(name string, names []string) string {
	commands := &cobra.Command{SuggestionsMinimumDistance: suggestionsDistance} // cobra compares names of commands only
	for _, other := range names {
		commands.AddCommand(&cobra.Command{Use: other, Run: func(*cobra.Command, []string) {}})
	}
	similar := commands.SuggestionsFor(name)
	return strings.Join(similar[:min(len(similar), maxSuggestions)], " or ")
}

// checkNamespace returns an error if a namespace does not exist. It suggests similar names, of namespaces in the cluster and in the
// lists of workloads. Nothing is known if the user may not read namespaces.
func (c *connection) checkNamespace(ctx context.Context, name string, list []v1alpha1.ThreeportWorkload) error {
	if name == "" {
		return nil
	}
	client, err := c.metadata()
	if err != nil {
		return err
	}
	namespaces := client.Resource(resource("", "v1", "namespaces"))
	if _, err := namespaces.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return nil // another error says nothing about the namespace
	}
	var names []string
	for i := range list {
		names = append(names, namespacesOf(&list[i])...)
	}
	if all, err := namespaces.List(ctx, metav1.ListOptions{}); err == nil {
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
	}
	if similar := similarTo(name, namespaceSet(names)); similar != "" {
		return usage("there is no namespace %q: did you mean %s?", name, similar)
	}
	return usage("there is no namespace %q: see `kubectl get namespaces`", name)
}

// workloadsFailure returns the error for a failed list of ThreeportWorkloads.
func workloadsFailure(err error) error {
	if apierrors.IsNotFound(err) {
		return &failure{exitCluster, fmt.Errorf("the cluster does not serve ThreeportWorkloads: install the agent, or choose another cluster with --context")}
	}
	return clusterFailure("list ThreeportWorkloads", err)
}

func decodeWorkload(u *unstructured.Unstructured) (v1alpha1.ThreeportWorkload, error) {
	var wl v1alpha1.ThreeportWorkload
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &wl); err != nil {
		return wl, &failure{exitCluster, fmt.Errorf("read ThreeportWorkload %s: %w: this plugin is of another version than the agent", u.GetName(), err)}
	}
	return wl, nil
}

// selectName restricts a list to one object. Unlike a get, a list distinguishes a missing object from a missing kind.
func selectName(name string) metav1.ListOptions {
	if name == "" {
		return metav1.ListOptions{}
	}
	return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
}

// completionTimeout bounds how long a shell waits for names.
const completionTimeout = 3 * time.Second

// completeWorkload offers the names of ThreeportWorkloads for the first argument.
func (c *connection) completeWorkload(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	list, err := c.workloads(ctx, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range list {
		names = append(names, cobra.CompletionWithDesc(list[i].Name, list[i].Status.Health))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (c *connection) contexts(*cobra.Command) []string {
	config, err := c.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	return names
}

func (c *connection) namespaces(cmd *cobra.Command) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	client, err := c.metadata()
	if err != nil {
		return nil
	}
	list, err := client.Resource(resource("", "v1", "namespaces")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
