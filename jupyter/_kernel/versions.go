//go:build go1.21

package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"gpunotes/gpukit"
)

// revision is the commit of the source, with a + if it was changed since; set by the linker where git knows it.
var revision = ""

// versions shows what the results and times of this notebook come from, for who wants
// them again: a table that can be copied into a report.
func (k *kernel) versions() error {
	t := table{names: []string{"what", "version"}, numbers: []bool{false, false}}
	add := func(what, version string) { t.rows = append(t.rows, []string{what, version}) }

	notes := "source " + build
	if revision != "" {
		notes = "revision " + revision + ", " + notes
	}
	module := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			module[m.Path] = m.Version // of the published one where a copy is built in
		}
	}
	if v := module["gpunotes"]; v != "" && v != "(devel)" {
		notes = v + ", " + notes
	}
	add("gpunotes", notes)
	add("Go", strings.TrimPrefix(runtime.Version(), "go"))
	add("gophernotes", Version)
	for _, m := range [][2]string{{"gomacro", "github.com/cosmos72/gomacro"}, {"gonum", "gonum.org/v1/gonum"}, {"gonum/plot", "gonum.org/v1/plot"}} {
		if v := strings.TrimPrefix(module[m[1]], "v"); v != "" {
			add(m[0], v)
		}
	}
	add("operating system", system())
	add("processor", processor())
	add("cores", fmt.Sprintf("%d, of which Go uses %d", runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	add("engine", engine())
	list := cards()
	for _, d := range list {
		add("GPU "+d.Name, d.Description)
	}
	switch {
	case len(list) > 0:
	case builtWithCUDA():
		add("GPU", "none, or no driver")
	default:
		add("GPU", "not looked for: built without CUDA")
	}
	t.total, t.head = len(t.rows), len(t.rows)
	return k.show(Data{Data: MIMEMap{MIMETypeText: t.text(), MIMETypeHTML: t.html()}})
}

func builtWithCUDA() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" && strings.Contains(","+s.Value+",", ",cuda,") {
			return true
		}
	}
	return false
}

// cards are the GPUs among the devices.
func cards() (list []gpukit.DeviceInfo) {
	for _, d := range gpukit.Devices() {
		if strings.HasPrefix(d.Name, "cuda:") {
			list = append(list, d)
		}
	}
	return list
}

// engine is what executes kernels on the processor.
func engine() string {
	d, err := gpukit.Open("parallel")
	if err != nil {
		return err.Error() // GPUNOTES_CPU asks for what the processor lacks
	}
	defer d.Close()
	p, err := d.Explain(math.Sqrt, 1.0)
	if err != nil {
		return err.Error()
	}
	return p.Engine
}

var (
	modelName  = regexp.MustCompile(`(?m)^(?:model name|Model|cpu model|Hardware)\s*:\s*(.+)$`)
	prettyName = regexp.MustCompile(`(?m)^PRETTY_NAME="?([^"\n]+)`)
)

// processor is the name that the processor has in the operating system.
func processor() string {
	name := ""
	switch runtime.GOOS {
	case "linux":
		if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
			if m := modelName.FindSubmatch(text); m != nil {
				name = string(m[1])
			}
		}
	case "darwin":
		if out, err := exec.Command("sysctl", "-n", "machdep.cpu.brand_string").Output(); err == nil {
			name = string(out)
		}
	case "windows":
		name = os.Getenv("PROCESSOR_IDENTIFIER")
	}
	if name = strings.Join(strings.Fields(name), " "); name == "" {
		return "unknown " + runtime.GOARCH
	}
	return name
}

// system is the operating system and the architecture.
func system() string {
	s := runtime.GOOS + "/" + runtime.GOARCH
	if text, err := os.ReadFile("/etc/os-release"); err == nil {
		if m := prettyName.FindSubmatch(text); m != nil {
			return string(m[1]) + ", " + s
		}
	}
	if runtime.GOOS == "darwin" {
		if out, err := exec.Command("sw_vers", "-productVersion").Output(); err == nil {
			return "macOS " + strings.TrimSpace(string(out)) + ", " + s
		}
	}
	return s
}
