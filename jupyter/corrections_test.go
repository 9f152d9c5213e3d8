package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The corrections fit the modules that go.mod names, and say so where they do not: one whose
// place is not there, or is there twice, is for another version.
func TestCorrections(t *testing.T) {
	root, err := sourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	for path, list := range patches {
		m, err := findModule(root, path)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := correct(folder, m.Dir, list); err != nil {
			t.Error(err)
		}
		for _, p := range list {
			if text, err := os.ReadFile(filepath.Join(folder, p.file)); err != nil || !strings.Contains(string(text), p.new) {
				t.Errorf("%s: not corrected (%v)", p.file, err)
			}
		}
		if err := correct(filepath.Join(t.TempDir(), "again"), folder, []patch{{list[0].file, "no such text", ""}}); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Error(err)
		}
		ours := filepath.Join(root, "jupyter", "_"+filepath.Base(path))
		if err := addFiles(folder, ours); err != nil {
			t.Error(err)
		}
		err = filepath.WalkDir(ours, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(ours, file)
			if !exists(filepath.Join(folder, rel)) {
				t.Errorf("%s was not added", rel)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}
