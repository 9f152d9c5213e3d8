package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gpuMachine is a made-up machine below a folder, with the given files.
func gpuMachine(t *testing.T, files map[string]string, vars ...string) machine {
	t.Helper()
	root := tree(t, files)
	for i := range vars {
		vars[i] = strings.ReplaceAll(vars[i], "ROOT", root)
	}
	return machine{
		goos: "linux", goarch: "amd64", lookup: lookup(vars...), root: root, prefix: filepath.Join(root, "venv"),
		lookPath: func(name string) (string, error) {
			for _, dir := range []string{"/usr/bin", "/opt/conda/bin"} {
				if isFile(filepath.Join(root, dir, name)) {
					return filepath.Join(dir, name), nil
				}
			}
			return "", exec.ErrNotFound
		},
		loader: func() string {
			data, _ := os.ReadFile(filepath.Join(root, "ldconfig"))
			return string(data)
		},
	}
}

func lookup(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func cudaH(version int) string {
	return fmt.Sprintf("/* made up */\n#define __CUDA_H__\n#  define CUDA_VERSION %d\n", version)
}

const (
	inCache  = "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1\n\tlibc.so.6 (libc6,x86-64) => /lib/libc.so.6\n"
	narrow   = "\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1\n"
	procInfo = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\nGCC version:  gcc version 12.2.0\n"
)

func TestPlanCUDA(t *testing.T) {
	gcc := map[string]string{"usr/bin/gcc": ""}
	lib := map[string]string{"usr/lib/x86_64-linux-gnu/libcuda.so.1": "", "ldconfig": inCache, "proc/driver/nvidia/version": procInfo}
	local := map[string]string{"usr/local/cuda/include/cuda.h": cudaH(12040)}
	files := func(parts ...map[string]string) map[string]string {
		all := map[string]string{}
		for _, p := range parts {
			for k, v := range p {
				all[k] = v
			}
		}
		return all
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		vars  []string
		way   string
		with  bool
		said  []string // parts of the line
		lacks string   // part of what --cuda=yes answers; "" if it builds
		fetch bool
	}{
		{"nothing", nil, nil, "auto", false, []string{"without CUDA: no driver (libcuda.so.1) on this machine"}, "no cuda.h and no C compiler (gcc)", false},
		{"everything", files(gcc, lib, local), nil, "auto", true, []string{"with CUDA: cuda.h of 12.4 in ", "/usr/local/cuda/include, driver 550.54.14 in ", "libcuda.so.1"}, "", false},
		{"not wanted", files(gcc, lib, local), nil, "no", false, []string{"without CUDA: --cuda=no"}, "", false},
		{"no driver, as in an image being built", files(gcc, local), nil, "auto", false, []string{"without CUDA: no driver"}, "", false},
		{"no driver, but asked for", files(gcc, local), nil, "yes", true, []string{"with CUDA: cuda.h of 12.4", "no driver (libcuda.so.1) on this machine"}, "", false},
		{"no header", files(gcc, lib), nil, "auto", false, []string{"without CUDA: driver 550.54.14", "but no cuda.h", "CUDA_HOME", "pip install"}, "no cuda.h", true},
		{"no compiler", files(lib, local), nil, "auto", false, []string{"but no C compiler (gcc)", "apt-get install gcc"}, "no C compiler", false},
		{"no header and no compiler", files(lib), nil, "auto", false, []string{"no cuda.h and no C compiler"}, "no cuda.h and no C compiler", false},
		{"compiler of another name", files(lib, local, map[string]string{"usr/bin/clang": ""}), []string{"CC", "clang -m64"}, "auto", true, nil, "", false},
		{"compiler of a name that is not there", files(gcc, lib, local), []string{"CC", "icc"}, "auto", false, []string{"no C compiler (icc)"}, "icc", false},
		{"header too old", files(gcc, lib, map[string]string{"usr/include/cuda.h": cudaH(9010)}), nil, "auto", false, []string{"only cuda.h of 9.1", "too old"}, "too old", true},
		{"header too old, another behind it", files(gcc, lib, map[string]string{"usr/local/cuda/include/cuda.h": cudaH(10020), "usr/include/cuda.h": cudaH(11080)}), nil, "auto", true, []string{"cuda.h of 11.8", "/usr/include"}, "", false},
		{"header that is none", files(gcc, lib, map[string]string{"usr/include/cuda.h": "int x;"}), nil, "auto", false, []string{"no cuda.h"}, "no cuda.h", true},
		{"CUDA_HOME comes first", files(gcc, lib, local, map[string]string{"my/include/cuda.h": cudaH(13050)}), []string{"CUDA_HOME", "ROOT/my"}, "auto", true, []string{"cuda.h of 13.5", "/my/include"}, "", false},
		{"CUDA_HOME without a header", files(gcc, lib, local), []string{"CUDA_HOME", "ROOT/gone"}, "auto", true, []string{"/usr/local/cuda/include"}, "", false},
		{"CUDA_PATH", files(gcc, lib, map[string]string{"p/targets/x86_64-linux/include/cuda.h": cudaH(12090)}), []string{"CUDA_PATH", "ROOT/p"}, "auto", true, []string{"12.9", "/p/targets/x86_64-linux/include"}, "", false},
		{"newest of several", files(gcc, lib, map[string]string{"usr/local/cuda-9.2/include/cuda.h": cudaH(9020), "usr/local/cuda-12.9/include/cuda.h": cudaH(12090), "usr/local/cuda-12.10/include/cuda.h": cudaH(12100)}), nil, "auto", true, []string{"cuda.h of 12.10"}, "", false},
		{"/opt/cuda", files(gcc, lib, map[string]string{"opt/cuda/include/cuda.h": cudaH(12020)}), nil, "auto", true, []string{"/opt/cuda/include"}, "", false},
		{"conda", files(gcc, lib, map[string]string{"conda/targets/x86_64-linux/include/cuda.h": cudaH(12030)}), []string{"CONDA_PREFIX", "ROOT/conda"}, "auto", true, []string{"12.3"}, "", false},
		{"fetched by make", files(gcc, lib, map[string]string{"venv/cuda-header-12/nvidia/cuda_runtime/include/cuda.h": cudaH(12090)}), nil, "auto", true, []string{"/venv/cuda-header-12/"}, "", false},
		{"fetched by make, several", files(gcc, lib, map[string]string{"venv/cuda-header-11/nvidia/cuda_runtime/include/cuda.h": cudaH(11080), "venv/cuda-header-12/nvidia/cuda_runtime/include/cuda.h": cudaH(12090)}), nil, "auto", true, []string{"cuda.h of 12.9"}, "", false},
		{"brought by another package", files(gcc, lib, map[string]string{"v/lib/python3.12/site-packages/nvidia/cu13/include/cuda.h": cudaH(13000)}), []string{"VIRTUAL_ENV", "ROOT/v"}, "auto", true, []string{"cuda.h of 13.0"}, "", false},
		{"driver by LD_LIBRARY_PATH", files(gcc, local, map[string]string{"d/libcuda.so.1": ""}), []string{"LD_LIBRARY_PATH", "/nowhere::ROOT/d"}, "auto", true, []string{"driver of unknown version in ", "/d/libcuda.so.1"}, "", false},
		{"driver by name", files(gcc, lib, local, map[string]string{"m/mock.so": ""}), []string{"GPUNOTES_LIBCUDA", "ROOT/m/mock.so"}, "auto", true, []string{"/m/mock.so"}, "", false},
		{"driver by a wrong name", files(gcc, lib, local), []string{"GPUNOTES_LIBCUDA", "ROOT/gone.so"}, "auto", false, []string{"without CUDA: GPUNOTES_LIBCUDA=", "/gone.so\" names no library"}, "", false},
		{"driver by an empty name: none", files(gcc, lib, local), []string{"GPUNOTES_LIBCUDA", ""}, "auto", false, []string{"without CUDA: GPUNOTES_LIBCUDA=\"\" names no library"}, "", false},
		{"driver of another name", files(gcc, lib, local, map[string]string{"d/libother.so": ""}), []string{"GPUNOTES_LIBCUDA", "libother.so", "LD_LIBRARY_PATH", "ROOT/d"}, "auto", true, []string{"/d/libother.so"}, "", false},
		{"driver of WSL", files(gcc, local, map[string]string{"usr/lib/wsl/lib/libcuda.so.1": ""}), nil, "auto", true, []string{"/usr/lib/wsl/lib/libcuda.so.1"}, "", false},
		{"driver of 32 bits", files(gcc, local, map[string]string{"usr/lib/i386-linux-gnu/libcuda.so.1": "", "ldconfig": narrow}), nil, "auto", false, []string{"no driver"}, "", false},
		{"driver in the cache, but gone", files(gcc, local, map[string]string{"ldconfig": inCache}), nil, "auto", false, []string{"no driver"}, "", false},
	} {
		m := gpuMachine(t, c.files, c.vars...)
		got := planCUDA(m, c.way)
		if got.with != c.with || got.fetch != c.fetch || strings.Contains(got.said, "\n") {
			t.Errorf("%s: %+v", c.name, got)
		}
		for _, part := range c.said {
			if !strings.Contains(got.said, part) {
				t.Errorf("%s: said %q, without %q", c.name, got.said, part)
			}
		}
		if err := planCUDA(m, "yes").lacking; (err == nil) != (c.lacks == "") || err != nil && !strings.Contains(err.Error(), c.lacks) {
			t.Errorf("%s: --cuda=yes: %v, want %q", c.name, err, c.lacks)
		}
	}
}

func TestOtherSystemsHaveNoCUDA(t *testing.T) {
	for _, system := range [][2]string{{"darwin", "arm64"}, {"windows", "amd64"}, {"linux", "riscv64"}} {
		m := gpuMachine(t, map[string]string{"usr/bin/gcc": "", "usr/include/cuda.h": cudaH(12000), "usr/lib/libcuda.so.1": ""})
		m.goos, m.goarch = system[0], system[1]
		if b := planCUDA(m, "auto"); b.with || !strings.Contains(b.said, system[0]+"/"+system[1]) {
			t.Errorf("%v: %+v", system, b)
		}
		if b := planCUDA(m, "yes"); b.with || b.lacking == nil {
			t.Errorf("%v: %+v", system, b)
		}
	}
}

func TestDriverVersion(t *testing.T) {
	m := gpuMachine(t, map[string]string{"lib/libcuda.so.535.261.03": "", "proc/driver/nvidia/version": procInfo})
	link := filepath.Join(m.root, "lib/libcuda.so.1")
	if err := os.Symlink("libcuda.so.535.261.03", link); err != nil {
		t.Skip(err)
	}
	if v := m.driverVersion(link); v != "535.261.03" {
		t.Error(v)
	}
	if v := m.driverVersion(filepath.Join(m.root, "other.so")); v != "550.54.14" {
		t.Error(v)
	}
	open := strings.Replace(procInfo, "UNIX x86_64 Kernel Module  550.54.14", "UNIX Open Kernel Module for x86_64  580.65.06", 1)
	if v := gpuMachine(t, map[string]string{"proc/driver/nvidia/version": open}).driverVersion("other.so"); v != "580.65.06" {
		t.Error(v)
	}
}

// The build cache does not see another text behind the same path: the flags must tell.
func TestFlagsNameTheHeader(t *testing.T) {
	m := gpuMachine(t, map[string]string{"a/include/cuda.h": cudaH(12040), "b/include/cuda.h": cudaH(12040) + "int more;\n", "c/include/cuda.h": cudaH(13000)})
	seen := map[string]bool{}
	for _, home := range []string{"a", "b", "c"} {
		link := filepath.Join(t.TempDir(), "cuda")
		if err := os.Symlink(filepath.Join(m.root, home), link); err != nil {
			t.Skip(err)
		}
		m.lookup = lookup("CUDA_HOME", link)
		h := m.headers()[0]
		h.dir = "/same/include"
		env, err := cudaEnv("/module", h)
		if err != nil {
			t.Fatal(err)
		}
		flags := env[slices.IndexFunc(env, func(s string) bool { return strings.HasPrefix(s, "CGO_CFLAGS=") })]
		if seen[flags] {
			t.Errorf("another header, the same flags: %s", flags)
		}
		seen[flags] = true
		ours, theirs := strings.Index(flags, "-I/module/gpukit/internal/driver/cuda/shim/include"), strings.Index(flags, "-I/same/include")
		if ours < 0 || theirs < ours {
			t.Errorf("our wrapper of cuda.h must come first: %s", flags)
		}
	}
	env, err := cudaEnv("/with space", header{dir: "/it", version: 12000})
	if err != nil || !strings.Contains(strings.Join(env, "\n"), "'-I/with space/gpukit") {
		t.Error(env, err)
	}
	if _, err := cudaEnv("/o'clock", header{}); err == nil {
		t.Error("a quote in a path was accepted")
	}
}

// A compiler that fails: auto goes on without CUDA and says why in two lines, yes fails.
func TestFailedBuildWithCUDA(t *testing.T) {
	m := gpuMachine(t, map[string]string{"usr/bin/gcc": "", "usr/include/cuda.h": cudaH(12040), "usr/lib/libcuda.so.1": ""})
	compilers := func(with bool) error {
		if with {
			return errors.New("go build: exit status 1\n# gorgonia.org/cu\naddressing.go:3:11: error: unknown type name 'CUmemLocation'\n 3 | more")
		}
		return nil
	}
	for _, c := range []struct {
		way, said string
		fails     bool
		cuda      string
	}{
		{"auto", "error: unknown type name 'CUmemLocation'", false, ""},
		{"yes", "", true, ""},
		{"no", "without CUDA: --cuda=no", false, "no"},
	} {
		var out bytes.Buffer
		got, err := chooseCUDA(m, c.way, func(plan cudaBuild) (mark, error) { return mark{Build: "b1"}, compilers(plan.with) }, &out)
		if (err != nil) != c.fails || got.CUDA != c.cuda || !strings.Contains(out.String(), c.said) {
			t.Errorf("--cuda=%s: %+v %v\n%s", c.way, got, err, &out)
		}
		if c.way == "auto" && strings.Count(out.String(), "\n") != 3 { // two why, one what it came to
			t.Errorf("said:\n%s", &out)
		}
		if c.fails && !strings.Contains(err.Error(), "CUmemLocation") {
			t.Error(err)
		}
	}
	got, err := chooseCUDA(m, "auto", func(plan cudaBuild) (mark, error) { return mark{}, nil }, io.Discard)
	if err != nil || got.CUDA != "12.4" {
		t.Error(got, err)
	}
}

// gpuKernel is a stand-in for a kernel that sees the GPUs all, or those of
// CUDA_VISIBLE_DEVICES.
func gpuKernel(with bool, all, visible, failure string) string {
	list := func(names string) string {
		var out []string
		for i, n := range strings.Fields(names) {
			out = append(out, fmt.Sprintf(`{"name":"cuda:%d","about":"%s"}`, i, n))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	return fmt.Sprintf(`case "$1" in
--selfcheck) %s ;;
--devices)
	if [ "${CUDA_VISIBLE_DEVICES+set}" ]; then echo '{"cuda":%t,"devices":%s,"error":"%s"}'; else echo '{"cuda":%[2]t,"devices":%[5]s,"error":"%[4]s"}'; fi ;;
esac`, good, with, list(visible), failure, list(all))
}

func TestDoctorExplainsCUDA(t *testing.T) {
	whole := map[string]string{"usr/bin/gcc": "", "usr/include/cuda.h": cudaH(12040), "usr/lib/libcuda.so.1": "", "proc/driver/nvidia/version": procInfo}
	headless := map[string]string{"usr/bin/gcc": "", "usr/lib/libcuda.so.1": ""}
	for _, c := range []struct {
		name    string
		files   map[string]string
		kernel  string
		cuda    string // of the mark
		visible string // CUDA_VISIBLE_DEVICES, "-" for none
		notes   []string
		what    string // of the one problem; "" for none
		cure    string
	}{
		{"no GPU, no CUDA", nil, gpuKernel(false, "", "", "this build has none"), "", "-", []string{"without CUDA: no driver (libcuda.so.1)", "simulated cards"}, "", ""},
		{"refused", whole, gpuKernel(false, "", "", "none"), "no", "-", []string{"--cuda=no was given"}, "", ""},
		{"could be", whole, gpuKernel(false, "", "", "none"), "", "-", nil, "now there are cuda.h of 12.4", "go run ./jupyter install"},
		{"no header", headless, gpuKernel(false, "", "", "none"), "", "-", nil, "but no cuda.h", "--cuda=no"},
		{"well", whole, gpuKernel(true, "H200 A100", "", ""), "12.4", "-", []string{"built with cuda.h of 12.4", "driver 550.54.14", "cuda:0: H200", "cuda:1: A100"}, "", ""},
		{"driver gone", nil, gpuKernel(true, "", "", "libcuda.so.1: cannot open shared object file"), "12.4", "-", []string{"built with cuda.h", "no driver", "until there is one"}, "", ""},
		{"no device", whole, gpuKernel(true, "", "", "cuInit: CUDA_ERROR_NO_DEVICE; open one of sim:x"), "12.4", "-", []string{"driver 550.54.14"}, "CUDA_ERROR_NO_DEVICE", "--gpus all"},
		{"updated, not rebooted", whole, gpuKernel(true, "", "", "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"), "12.4", "-", nil, "MISMATCH", "reboot"},
		{"does not load", whole, gpuKernel(true, "", "", "libcuda.so.1: wrong ELF class"), "12.4", "-", nil, "wrong ELF class", "nvidia-smi"},
		{"all hidden", whole, gpuKernel(true, "H200 A100", "", "no device is visible"), "12.4", "-1", nil, `CUDA_VISIBLE_DEVICES="-1" hides all 2 GPUs`, "unset CUDA_VISIBLE_DEVICES"},
		{"one hidden", whole, gpuKernel(true, "H200 A100", "H200", ""), "12.4", "0", []string{"cuda:0: H200", `CUDA_VISIBLE_DEVICES="0" hides 1 more`}, "", ""},
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", c.visible)
		if c.visible == "-" {
			os.Unsetenv("CUDA_VISIBLE_DEVICES")
		}
		p := at(t)
		b := func(binary string, _ io.Writer) (mark, error) {
			return mark{Build: "b1", Go: "go1", CUDA: c.cuda}, os.WriteFile(binary, []byte("#!/bin/sh\n"+c.kernel), 0o755)
		}
		if err := install(p, b, io.Discard); err != nil {
			t.Fatal(c.name, err)
		}
		notes, list := examineCUDA(p, gpuMachine(t, c.files))
		for _, part := range c.notes {
			if !strings.Contains(strings.Join(notes, "\n"), part) {
				t.Errorf("%s: notes %q, without %q", c.name, notes, part)
			}
		}
		switch {
		case c.what == "":
			if len(list) != 0 {
				t.Errorf("%s: %v", c.name, list)
			}
		case len(list) != 1 || !strings.Contains(list[0].what, c.what) || !strings.Contains(list[0].cure, c.cure) || strings.Contains(list[0].what, "open one of"):
			t.Errorf("%s: %v, want %q and the cure %q", c.name, list, c.what, c.cure)
		}
	}
	// What is no kernel of ours, or an older one, is for the other examinations.
	p := at(t)
	mustInstall(t, p)
	if notes, list := examineCUDA(p.named("gone"), gpuMachine(t, nil)); notes != nil || list != nil {
		t.Error(notes, list)
	}
}

// The Makefile looks for these words.
func TestSayCUDA(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	const words = "cuda.h is all that is missing"
	if !strings.Contains(string(makefile), words) {
		t.Errorf("the Makefile does not look for %q", words)
	}
	whole := map[string]string{"usr/bin/gcc": "", "usr/include/cuda.h": cudaH(12040), "usr/lib/libcuda.so.1": ""}
	for gone, want := range map[string]bool{"": false, "usr/include/cuda.h": true, "usr/bin/gcc": false, "usr/lib/libcuda.so.1": false} {
		files := map[string]string{}
		for k, v := range whole {
			if k != gone {
				files[k] = v
			}
		}
		var out bytes.Buffer
		sayCUDA(gpuMachine(t, files), "auto", &out)
		if got := strings.HasSuffix(out.String(), "\n"+words+"\n"); got != want {
			t.Errorf("without %q: %s", gone, &out)
		}
	}
}
