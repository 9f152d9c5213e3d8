package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// problem is something wrong with an install, and what cures it.
type problem struct{ what, cure string }

// doctor examines an installed kernel and reports; it returns the exit status.
func doctor(p place, m machine, out io.Writer) int {
	problems := examine(p)
	notes, more := examineCUDA(p, m)
	problems = append(problems, more...)
	if root, err := sourceRoot(); err == nil {
		problems = append(problems, examineAge(p, root)...)
	}
	problems = append(problems, examineJupyter(p, findJupyter(p))...)
	for _, x := range problems {
		fmt.Fprintf(out, "problem: %s\n   cure: %s\n", x.what, x.cure)
	}
	if len(problems) == 0 {
		fmt.Fprintf(out, "the kernel %q in %s is well\n", p.name, p.dir())
	}
	for _, n := range notes {
		fmt.Fprintf(out, "CUDA: %s\n", n)
	}
	return min(len(problems), 1)
}

// examine looks at the kernelspec and the program in it.
func examine(p place) []problem {
	dir, again := p.dir(), p.command("install")
	one := func(format string, args ...any) []problem {
		return []problem{{fmt.Sprintf(format, args...), again}}
	}
	if !exists(dir) {
		list := one("the kernel %q is not installed in %s", p.name, filepath.Dir(dir))
		for _, o := range installed(p, os.Getenv) {
			list[0].cure += fmt.Sprintf("; or look at the one in %s: %s", o.dir(), o.command("doctor"))
		}
		return list
	}
	s, err := readSpec(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []problem{{fmt.Sprintf("%s has no kernel.json", dir), fmt.Sprintf("rm -r %s, then %s", quote(dir), again)}}
	case errors.Is(err, fs.ErrPermission):
		return []problem{{fmt.Sprintf("you may not read %s", filepath.Join(dir, "kernel.json")), "chmod -R u+rwX " + quote(dir)}}
	case err != nil:
		return []problem{{err.Error(), fmt.Sprintf("rm -r %s, then %s", quote(dir), again)}}
	case s.Metadata.Mark == nil && len(s.Argv) == 0:
		return []problem{{
			fmt.Sprintf("%s starts nothing and does not say whose it is", filepath.Join(dir, "kernel.json")),
			fmt.Sprintf("if you do not need it, rm -r %s, then %s", quote(dir), again),
		}}
	case s.Metadata.Mark == nil:
		whose := s.DisplayName
		if whose == "" {
			whose = s.Argv[0]
		}
		return []problem{{fmt.Sprintf("%s belongs to another kernel (%q), not to gpunotes", dir, whose), "install under another name with --as NAME, or remove that one"}}
	}
	var list []problem
	want := newSpec(*s.Metadata.Mark, p.name)
	if !slices.Equal(s.Argv, want.Argv) {
		list = append(list, one("kernel.json starts %q instead of %q", s.Argv, want.Argv)...)
	}
	if s.InterruptMode != want.InterruptMode {
		list = append(list, one("kernel.json has interrupt_mode %q instead of %q", s.InterruptMode, want.InterruptMode)...)
	}
	binary := filepath.Join(dir, binaryName())
	info, err := os.Stat(binary)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return append(list, one("the kernel program %s is missing", binary)...)
	case err != nil:
		return append(list, one("the kernel program cannot be looked at: %v", err)...)
	case !info.Mode().IsRegular():
		return append(list, one("%s is not a file", binary)...)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return append(list, problem{fmt.Sprintf("%s may not be executed", binary), "chmod +x " + quote(binary)})
	}
	c, err := selfcheck(binary)
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return append(list, one("%s is not a program for this machine (%s/%s)", binary, runtime.GOOS, runtime.GOARCH)...)
	case err != nil:
		return append(list, one("the kernel program does not work: %v", err)...)
	case c.Build != s.Metadata.Mark.Build:
		list = append(list, one("kernel.json and the program in %s are from two different builds", dir)...)
	}
	return list
}

// seen is what a kernel program says of the machine's GPUs.
type seen struct {
	CUDA    bool `json:"cuda"` // built with it
	Devices []struct {
		Name  string `json:"name"`
		About string `json:"about"`
	} `json:"devices"`
	Error string `json:"error"` // why the first cannot be opened
}

// askDevices has a kernel program look for GPUs, with or without the variable
// that hides some.
func askDevices(binary string, all bool) (s seen, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--devices")
	cmd.WaitDelay = time.Second
	if all {
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, hiding+"=") })
	}
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	s.Error, _, _ = strings.Cut(strings.TrimPrefix(s.Error, `gpukit.Open("cuda:0"): `), "; open one of ") // the cards to simulate do not help here
	return s, err
}

// hiding is the variable that says which GPUs a process sees.
const hiding = "CUDA_VISIBLE_DEVICES"

// examineCUDA says what the kernel can do with this machine's GPUs.
func examineCUDA(p place, m machine) (notes []string, list []problem) {
	spec, err := readSpec(p.dir())
	if err != nil || spec.Metadata.Mark == nil {
		return nil, nil // examine has said so
	}
	binary := filepath.Join(p.dir(), binaryName())
	s, err := askDevices(binary, false)
	if err != nil {
		return nil, nil // examine, or examineAge, has said so
	}
	plan, lib := planCUDA(m, "auto"), m.libcuda()
	switch {
	case !s.CUDA && spec.Metadata.Mark.CUDA == "no":
		return []string{"the kernel was built without, because --cuda=no was given"}, nil
	case !s.CUDA && plan.with:
		return nil, []problem{{"the kernel was built without CUDA, and now there are " + plan.header.String() + " and a driver, " + lib, p.command("install")}}
	case !s.CUDA && lib != "":
		return nil, []problem{{"the kernel was built " + plan.said, "do that, then " + p.command("install") + "; or, to do without, " + p.command("install") + " --cuda=no"}}
	case !s.CUDA:
		return []string{"the kernel was built " + plan.said + "; it computes on the cores and on simulated cards"}, nil
	}
	notes = append(notes, "the kernel was built with cuda.h of "+spec.Metadata.Mark.CUDA)
	if lib == "" {
		return append(notes, strings.TrimPrefix(plan.said, "without CUDA: ")+": it computes on the cores and on simulated cards until there is one"), nil
	}
	notes = append(notes, "driver "+cmp.Or(m.driverVersion(lib), "of unknown version")+" in "+lib)
	for _, d := range s.Devices {
		notes = append(notes, d.Name+": "+d.About)
	}
	value, set := os.LookupEnv(hiding)
	hidden := 0
	if set {
		if all, err := askDevices(binary, true); err == nil {
			hidden = len(all.Devices) - len(s.Devices)
		}
	}
	switch {
	case hidden > 0 && len(s.Devices) == 0:
		list = append(list, problem{
			fmt.Sprintf("%s=%q hides all %d GPUs of this machine", hiding, value, hidden),
			fmt.Sprintf("unset %s, or list the numbers that nvidia-smi -L gives: export %[1]s=0", hiding),
		})
	case hidden > 0:
		notes = append(notes, fmt.Sprintf("%s=%q hides %d more", hiding, value, hidden))
	}
	if s.Error != "" && hidden == 0 {
		list = append(list, problem{s.Error, cureOf(s.Error)})
	}
	return notes, list
}

// cureOf says what to do about a driver that gives no device.
func cureOf(what string) string {
	switch {
	case strings.Contains(what, "NO_DEVICE"):
		return "nvidia-smi must list a GPU: start a container with --gpus all; elsewhere, lspci | grep -i nvidia and ls -l /dev/nvidia* show what is there"
	case strings.Contains(what, "MISMATCH"):
		return "driver and kernel module differ, as after an update: reboot"
	}
	return "nvidia-smi tells whether the driver itself works; if not, install it anew"
}

// installed lists our kernels elsewhere: under other names, and in the user's own
// directory, the active environment or that of make lab.
func installed(p place, getenv func(string) string) (list []place) {
	homes := []place{p}
	if user, err := choosePlace("", true, p.name, "", getenv); err == nil {
		homes = append(homes, user)
	}
	for _, dir := range []string{getenv("VIRTUAL_ENV"), labHere()} {
		if env, err := choosePlace(dir, false, p.name, "", getenv); dir != "" && err == nil {
			homes = append(homes, env)
		}
	}
	seen := map[string]bool{p.dir(): true}
	for _, home := range homes {
		entries, err := os.ReadDir(filepath.Join(home.data, "kernels"))
		if err != nil {
			continue // none there
		}
		for _, e := range entries {
			o := home.named(e.Name())
			if s, err := readSpec(o.dir()); err == nil && s.Metadata.Mark != nil && !seen[o.dir()] {
				seen[o.dir()] = true
				list = append(list, o)
			}
		}
	}
	return list
}

// examineAge compares the installed kernel with the source.
func examineAge(p place, root string) []problem {
	s, err := readSpec(p.dir())
	if err != nil || s.Metadata.Mark == nil {
		return nil // examine has said so
	}
	now, err := fingerprint(root)
	if err != nil {
		return []problem{{fmt.Sprintf("the source in %s cannot be read: %v", root, err), "check out the source again"}}
	}
	if s.Metadata.Mark.Build != now {
		return []problem{{fmt.Sprintf("the kernel was built from another state of the source than the one in %s", root), p.command("install")}}
	}
	return nil
}

// findJupyter returns the jupyter command that belongs to a place: the one in
// its own environment, else the one on the PATH; "" if there is none.
func findJupyter(p place) string {
	for _, bin := range []string{"bin/jupyter", "Scripts/jupyter.exe"} {
		if path := filepath.Join(p.data, "..", "..", bin); exists(path) {
			return path
		}
	}
	path, err := exec.LookPath("jupyter")
	if err != nil {
		return ""
	}
	return path
}

// examineJupyter asks Jupyter where it finds the kernel.
func examineJupyter(p place, jupyter string) []problem {
	if jupyter == "" {
		return []problem{{"the command jupyter is not on your PATH", "pip install jupyterlab (in the environment you work in)"}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, jupyter, "kernelspec", "list", "--json")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var listed struct {
		Specs map[string]struct {
			Dir string `json:"resource_dir"`
		} `json:"kernelspecs"`
	}
	if err == nil {
		err = json.Unmarshal(out, &listed)
	}
	if err != nil {
		return []problem{{fmt.Sprintf("%s kernelspec list does not work: %v", jupyter, err), "pip install --upgrade jupyter_client (in the environment of that jupyter)"}}
	}
	if !exists(filepath.Join(p.dir(), "kernel.json")) {
		return nil // examine has said so
	}
	found := listed.Specs[p.name].Dir
	switch {
	case found == "":
		return []problem{{
			fmt.Sprintf("%s does not look for kernels in %s", jupyter, filepath.Dir(p.dir())),
			"install with --user, or with --prefix and the environment of that jupyter, or start it with JUPYTER_PATH=" + quote(p.data),
		}}
	case !sameFile(found, p.dir()):
		return []problem{{
			fmt.Sprintf("%s takes the kernel %q from %s, which hides the one in %s", jupyter, p.name, found, p.dir()),
			fmt.Sprintf("remove %s, or install there", strings.TrimRight(found, "/")),
		}}
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}
