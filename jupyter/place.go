package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// place is where a kernelspec goes.
type place struct {
	data  string // Jupyter data directory
	name  string // of the kernelspec
	where string // the flag that leads to data, for messages
}

// dir is the directory of the kernelspec.
func (p place) dir() string { return filepath.Join(p.data, "kernels", p.name) }

// named is the kernelspec of another name beside p.
func (p place) named(name string) place {
	p.name = name
	return p
}

// flags are the flags that lead here.
func (p place) flags() string {
	if p.name == "gpunotes" {
		return p.where
	}
	return strings.TrimSpace(p.where + " --as " + p.name)
}

func (p place) command(verb string) string {
	return strings.TrimSpace("go run ./jupyter " + verb + " " + p.flags())
}

var validName = regexp.MustCompile(`^[a-z0-9._-]+$`)

// labHere is the environment that make lab makes in the current directory, "" if there
// is none with kernels.
func labHere() string {
	env, err := filepath.Abs(".venv")
	if err != nil || !exists(filepath.Join(env, "share", "jupyter", "kernels")) {
		return ""
	}
	return env
}

// choosePlace turns the flags into a place. Without any that is the active environment,
// else that of make lab, else the user's own directory.
func choosePlace(prefix string, user bool, name, lab string, getenv func(string) string) (place, error) {
	if !validName.MatchString(name) || strings.Trim(name, ".") == "" {
		return place{}, fmt.Errorf("--as %q: the name of a kernelspec is made of a-z 0-9 . _ -", name)
	}
	p := place{name: name}
	switch {
	case prefix != "" && user:
		return place{}, errors.New("give --prefix or --user, not both")
	case prefix != "":
		abs, err := filepath.Abs(prefix)
		if err != nil {
			return place{}, err
		}
		p.data, p.where = filepath.Join(abs, "share", "jupyter"), "--prefix "+quote(abs)
	case !user && getenv("VIRTUAL_ENV") != "":
		p.data = filepath.Join(getenv("VIRTUAL_ENV"), "share", "jupyter")
	case !user && lab != "":
		p.data = filepath.Join(lab, "share", "jupyter")
	default:
		data, err := userData(runtime.GOOS, getenv)
		if err != nil {
			return place{}, err
		}
		p.data = data
		if user {
			p.where = "--user"
		}
	}
	return p, nil
}

func quote(s string) string {
	if strings.ContainsAny(s, " \t'\"$&()") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// userData is Jupyter's data directory of the user, by the rules of jupyter_core.
func userData(goos string, getenv func(string) string) (string, error) {
	if d := getenv("JUPYTER_DATA_DIR"); d != "" {
		return d, nil
	}
	home := getenv("HOME")
	if goos == "windows" {
		if d := getenv("APPDATA"); d != "" {
			return filepath.Join(d, "jupyter"), nil
		}
		home = getenv("USERPROFILE")
	}
	if home == "" {
		return "", errors.New("your home directory is unknown (HOME is not set): use --prefix DIR, or set JUPYTER_DATA_DIR")
	}
	switch goos {
	case "windows":
		return filepath.Join(home, ".jupyter", "data"), nil
	case "darwin":
		return filepath.Join(home, "Library", "Jupyter"), nil
	}
	if d := getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "jupyter"), nil
	}
	return filepath.Join(home, ".local", "share", "jupyter"), nil
}

// binaryName is the name of the kernel program on this system.
func binaryName() string {
	if runtime.GOOS == "windows" {
		return "gophernotes.exe"
	}
	return "gophernotes"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
