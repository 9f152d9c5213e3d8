package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

// A correction whose place is not there, or is there twice, is for another version of the module.
func TestCorrectionsFindTheirPlaces(t *testing.T) {
	root, err := sourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	for path, list := range patches {
		m, err := findModule(root, path)
		if err != nil {
			t.Skipf("%s is not at hand: %v", path, err)
		}
		folder := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := correct(folder, m.Dir, list); err != nil {
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
