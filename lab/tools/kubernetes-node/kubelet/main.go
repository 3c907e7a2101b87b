// The kubelet, with one difference: it takes the node for a machine of the given size, whatever this one has. So the
// node that it joins offers what its pool's machine type offers, and a stack's requests need no change.
package main

import (
	"context"
	"fmt"
	"os"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers its metrics
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

// sized tells of the machine's own measurements, but of the given size.
type sized struct {
	cadvisor.Interface
	cores  int
	memory uint64
}

func (s sized) MachineInfo() (*cadvisorapi.MachineInfo, error) {
	info, err := s.Interface.MachineInfo()
	if err != nil {
		return nil, err
	}
	told := *info
	told.NumCores, told.MemoryCapacity = s.cores, s.memory
	return &told, nil
}

func run(ctx context.Context, arguments []string) error {
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.SetNormalizeFunc(flag.WordSepNormalizeFunc)
	cores := flags.Int("machine-cores", 1, "cores of the machine type")
	memory := flags.String("machine-memory", "1Gi", "memory of the machine type, as a quantity")
	kubeletFlags := options.NewKubeletFlags()
	kubeletFlags.AddFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	bytes, err := resource.ParseQuantity(*memory)
	if err != nil {
		return fmt.Errorf("--machine-memory: %w", err)
	}
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, kubeletFlags.KubeletConfigFile)
	if err != nil {
		return err
	}
	config, err := loader.Load(ctx)
	if err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(config.FeatureGates); err != nil {
		return err
	}
	server := &options.KubeletServer{KubeletFlags: *kubeletFlags, KubeletConfiguration: *config}
	dependencies, err := app.UnsecuredDependencies(ctx, server, utilfeature.DefaultFeatureGate)
	if err != nil {
		return err
	}
	endpoint := config.ContainerRuntimeEndpoint
	measured, err := cadvisor.New(
		klog.FromContext(ctx), cadvisor.NewImageFsInfoProvider(endpoint), server.RootDirectory, []string{config.CgroupRoot},
		cadvisor.UsingLegacyCadvisorStats(endpoint), config.LocalStorageCapacityIsolation)
	if err != nil {
		return err
	}
	dependencies.CAdvisorInterface = sized{measured, *cores, uint64(bytes.Value())}
	return app.Run(ctx, server, dependencies, utilfeature.DefaultFeatureGate)
}

func main() {
	if err := run(genericapiserver.SetupSignalContext(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
