package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// machine is what a build with CUDA looks at. Tests put a made-up tree in its place.
type machine struct {
	goos, goarch string
	lookup       func(string) (string, bool)  // of an environment variable
	root         string                       // "" but for tests: stands before absolute paths
	prefix       string                       // of the environment that the kernel goes to; "" if none
	lookPath     func(string) (string, error) // of a program
	loader       func() string                // what ldconfig -p says
}

func thisMachine(p place) machine {
	return machine{runtime.GOOS, runtime.GOARCH, os.LookupEnv, "", filepath.Dir(filepath.Dir(p.data)), exec.LookPath, loaderCache}
}

func (m machine) getenv(name string) string {
	value, _ := m.lookup(name)
	return value
}

func loaderCache() string {
	for _, name := range []string{"ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"} {
		if out, err := exec.Command(name, "-p").Output(); err == nil {
			return string(out)
		}
	}
	return ""
}

// namingLibrary is the variable that names another library.
const namingLibrary = "GPUNOTES_LIBCUDA"

// driverLibrary is the file that NVIDIA's driver brings and the loader looks for.
const driverLibrary = "libcuda.so.1"

// libcuda is the driver's library, as the loader will find it when the kernel
// runs; "" if it will not.
func (m machine) libcuda() string {
	file := driverLibrary
	if named, set := m.lookup(namingLibrary); set { // the kernel takes this one and no other, and none if it is empty
		if file = named; named == "" || strings.Contains(named, "/") {
			if named != "" && isFile(named) {
				return named
			}
			return ""
		}
	}
	for _, dir := range filepath.SplitList(m.getenv("LD_LIBRARY_PATH")) {
		if f := filepath.Join(dir, file); dir != "" && isFile(f) {
			return f
		}
	}
	for _, line := range strings.Split(m.loader(), "\n") {
		name, f, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if ok && strings.HasPrefix(name, file+" ") && isFile(m.root+f) && !m.otherWord(name) {
			return m.root + f
		}
	}
	triple := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[m.goarch] + "-linux-gnu"
	for _, dir := range []string{"/usr/lib/wsl/lib", "/lib/" + triple, "/usr/lib/" + triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
		if f := filepath.Join(m.root+dir, file); isFile(f) {
			return f
		}
	}
	return ""
}

// otherWord tells a 32-bit library by what ldconfig says of it: "(libc6)".
func (m machine) otherWord(name string) bool {
	return !strings.Contains(name, map[string]string{"amd64": "x86-64", "arm64": "AArch64"}[m.goarch])
}

// driverVersion is the version that the name of the driver's library carries, or
// the one of the kernel module; "" if neither says it.
func (m machine) driverVersion(lib string) string {
	if f, err := filepath.EvalSymlinks(lib); err == nil {
		if v := regexp.MustCompile(`\.so\.(\d{3,}[.\d]*)$`).FindStringSubmatch(f); v != nil {
			return v[1]
		}
	}
	data, _ := os.ReadFile(m.root + "/proc/driver/nvidia/version")
	if v := regexp.MustCompile(`Kernel Module.*?\s(\d{3,}(?:\.\d+)+)\s`).FindSubmatch(data); v != nil {
		return string(v[1])
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// header is a cuda.h.
type header struct {
	dir     string
	version int    // CUDA_VERSION: 12040
	sum     string // of its text
}

// String returns e.g. "cuda.h of 12.4 in /usr/local/cuda/include".
func (h header) String() string { return fmt.Sprintf("cuda.h of %s in %s", h.release(), h.dir) }

func (h header) release() string { return fmt.Sprintf("%d.%d", h.version/1000, h.version%1000/10) }

// oldestHeader is the first CUDA_VERSION whose cuda.h has all that the binding names.
const oldestHeader = 11000

var cudaVersion = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+CUDA_VERSION[ \t]+(\d+)`)

// headers lists the cuda.h of this machine, the one to take first.
func (m machine) headers() (list []header) {
	target := map[string]string{"amd64": "x86_64-linux", "arm64": "sbsa-linux"}[m.goarch]
	var dirs []string
	toolkit := func(homes ...string) {
		for _, home := range homes {
			if home != "" {
				dirs = append(dirs, filepath.Join(home, "include"), filepath.Join(home, "targets", target, "include"))
			}
		}
	}
	toolkit(m.getenv("CUDA_HOME"), m.getenv("CUDA_PATH"), m.root+"/usr/local/cuda")
	versions, _ := filepath.Glob(m.root + "/usr/local/cuda-*")
	slices.SortFunc(versions, func(a, b string) int { return cmp.Compare(release(b), release(a)) })
	toolkit(versions...)
	toolkit(m.root + "/opt/cuda")
	dirs = append(dirs, m.root+"/usr/include")
	toolkit(m.getenv("CONDA_PREFIX"))
	for _, dir := range dirs {
		if h, ok := readHeader(dir); ok {
			list = append(list, h)
		}
	}
	for _, env := range []string{m.prefix, m.getenv("VIRTUAL_ENV"), m.getenv("CONDA_PREFIX")} {
		if env == "" {
			continue
		}
		var found []header
		// What make put there, and NVIDIA's packages from PyPI, which come with many others.
		for _, pattern := range []string{"cuda-header-*/nvidia/*/include", "lib/python3*/site-packages/nvidia/*/include"} {
			dirs, _ := filepath.Glob(filepath.Join(env, pattern))
			for _, dir := range dirs {
				if h, ok := readHeader(dir); ok {
					found = append(found, h)
				}
			}
		}
		slices.SortStableFunc(found, func(a, b header) int { return cmp.Compare(b.version, a.version) })
		list = append(list, found...)
	}
	return list
}

// readHeader reads the version of dir's cuda.h; false if there is none.
func readHeader(dir string) (header, bool) {
	data, err := os.ReadFile(filepath.Join(dir, "cuda.h"))
	v := cudaVersion.FindSubmatch(data)
	if err != nil || v == nil {
		return header{}, false
	}
	n, err := strconv.Atoi(string(v[1]))
	return header{dir, n, fmt.Sprintf("%x", sha256.Sum256(data))[:12]}, err == nil
}

// release is the number behind cuda-: 1204 of /usr/local/cuda-12.4.
func release(dir string) int {
	_, v, _ := strings.Cut(filepath.Base(dir), "-")
	major, minor, _ := strings.Cut(v, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	return 100*a + b
}

// cudaWays are the values of --cuda.
var cudaWays = []string{"auto", "yes", "no"}

// cudaBuild says whether to build with CUDA.
type cudaBuild struct {
	with    bool
	header  header
	said    string // one line for the user
	lacking error  // with --cuda=yes: why it cannot be
	fetch   bool   // a header is all that is missing
}

// supported are the machines for which there is a binding of libcuda.
var supported = []string{"linux/amd64", "linux/arm64"}

// planCUDA decides. A build needs cuda.h and a C compiler; without being asked
// for it happens only where there is a driver too.
func planCUDA(m machine, way string) (b cudaBuild) {
	if way == "no" {
		b.said = "without CUDA: --cuda=no"
		return b
	}
	var missing, cures []string
	lacks := func(what, cure string) { missing, cures = append(missing, what), append(cures, cure) }
	system := m.goos + "/" + m.goarch
	if !slices.Contains(supported, system) {
		lacks("CUDA devices are for "+strings.Join(supported, ", ")+", this is "+system, "use the simulated cards there")
		b.said, b.lacking = "without CUDA: "+missing[0], errors.New(missing[0])
		return b
	}
	lib := m.libcuda()
	driver := "no driver (" + driverLibrary + ") on this machine"
	if named, set := m.lookup(namingLibrary); lib == "" && set {
		driver = fmt.Sprintf("%s=%q names no library on this machine", namingLibrary, named)
	}
	if lib != "" {
		driver = "driver " + cmp.Or(m.driverVersion(lib), "of unknown version") + " in " + lib
	}
	list := m.headers()
	i := slices.IndexFunc(list, func(h header) bool { return h.version >= oldestHeader })
	switch {
	case i >= 0:
		b.header = list[i]
	case len(list) > 0:
		lacks(fmt.Sprintf("only %v, which is too old", list[0]), "install a toolkit of CUDA 11 or later, or pip install nvidia-cuda-runtime-cu12")
	default:
		lacks("no cuda.h", "install NVIDIA's CUDA toolkit and set CUDA_HOME, or pip install nvidia-cuda-runtime-cu12 into the environment of the kernel")
	}
	cc := cmp.Or(firstField(m.getenv("CC")), "gcc")
	if _, err := m.lookPath(cc); err != nil {
		lacks("no C compiler ("+cc+")", "apt-get install gcc libc6-dev, or set CC")
	}
	switch {
	case lib == "" && way == "auto":
		b.said = "without CUDA: " + driver
	case len(missing) > 0:
		b.fetch = lib != "" && b.header.version == 0 && len(missing) == 1
		b.said = fmt.Sprintf("without CUDA: %s, but %s (%s)", driver, strings.Join(missing, " and "), strings.Join(cures, "; "))
		b.lacking = fmt.Errorf("a build with CUDA needs more than this machine has: %s\n%s", strings.Join(missing, " and "), strings.Join(cures, "\n"))
	default:
		b.with = true
		b.said = fmt.Sprintf("with CUDA: %v, %s", b.header, driver)
	}
	return b
}

func firstField(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}

// cudaEnv is the environment of a build with CUDA of the module at root. The name
// of the header is among the flags because the build cache does not notice
// another text behind the same path.
func cudaEnv(root string, h header) ([]string, error) {
	flags := "-O2 -g"
	for _, dir := range []string{filepath.Join(root, filepath.FromSlash("gpukit/internal/driver/cuda/shim/include")), h.dir} {
		switch {
		case !strings.ContainsAny(dir, " \t'\""):
			flags += " -I" + dir
		case !strings.Contains(dir, "'"):
			flags += " '-I" + dir + "'"
		default:
			return nil, fmt.Errorf("a build with CUDA needs a path without quotes, not %s", dir)
		}
	}
	return []string{"CGO_ENABLED=1", "CGO_CPPFLAGS=", fmt.Sprintf("CGO_CFLAGS=%s -DGPUNOTES_CUDA_HEADER_%d_%s", flags, h.version, h.sum)}, nil
}

// cudaTags are the build tags beside it: names and users are looked up as in a
// build without C.
const cudaTags = "-tags=cuda,netgo,osusergo"

// kernelBuilder returns the builder of the kernel with or without CUDA, as --cuda
// and the machine have it.
func kernelBuilder(m machine, way string, with packages) builder {
	return func(binary string, progress io.Writer) (mark, error) {
		return buildKeeping(with, func(with []string) (mark, error) {
			return chooseCUDA(m, way, func(plan cudaBuild) (mark, error) { return buildKernel(binary, plan, with, progress) }, progress)
		}, progress)
	}
}

// buildKeeping builds with the packages that the kernel had; where that fails, once more
// without: what was kept must not keep a new kernel from being built. If both fail, what
// was kept is not to blame, and the first error is returned.
func buildKeeping(with packages, build func(with []string) (mark, error), progress io.Writer) (mark, error) {
	made, err := build(append(slices.Clone(with.kept), with.asked...))
	if err != nil && len(with.kept) > 0 {
		fmt.Fprintf(progress, "%v\nso once more without %s, which the kernel had\n", err, strings.Join(with.kept, ", "))
		if second, failed := build(with.asked); failed == nil {
			return second, nil
		}
	}
	return made, err
}

// chooseCUDA builds, and says in a line with what.
func chooseCUDA(m machine, way string, build func(cudaBuild) (mark, error), progress io.Writer) (mark, error) {
	plan := planCUDA(m, way)
	if way == "yes" && plan.lacking != nil {
		return mark{}, plan.lacking
	}
	made, err := build(plan)
	if err != nil && plan.with && way == "auto" {
		fmt.Fprintf(progress, "with CUDA (%v) it does not compile: %s\n", plan.header, compilerSays(err))
		fmt.Fprintf(progress, "so once more without; go run ./jupyter install --cuda=yes shows all the compiler says, --cuda=no leaves the attempt out\n")
		plan = cudaBuild{said: "without CUDA: see above"}
		made, err = build(plan)
	}
	if err != nil {
		return made, err
	}
	fmt.Fprintln(progress, plan.said)
	if plan.with {
		made.CUDA = plan.header.release()
	} else if way == "no" {
		made.CUDA = "no"
	}
	return made, nil
}

// compilerSays is the line of a failed build that says most.
func compilerSays(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for _, l := range lines {
		if strings.Contains(l, "error:") || strings.Contains(l, "undefined") || strings.Contains(l, "cannot find") {
			return strings.TrimSpace(l)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// sayCUDA tells what install would do. Make, which can fetch a cuda.h, looks for
// the second line.
func sayCUDA(m machine, way string, out io.Writer) {
	b := planCUDA(m, way)
	fmt.Fprintln(out, b.said)
	if b.fetch {
		fmt.Fprintln(out, "cuda.h is all that is missing")
	}
}
