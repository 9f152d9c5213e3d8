//go:build planted

package gpukit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// notSuite are tests that look at the text of the house rather than at what it
// computes.
const notSuite = "TestNoFusing|TestImportPolicy|TestEveryExported|Trace|TestPages|TestMap|Readme|TestPlainProgram"

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	testedFor  = regexp.MustCompile(`(?m)^FAIL\s+\S+\s+([0-9.]+)s`)
)

// TestPlantedFaults plants each fault in a copy of its file and demands that the
// tests of this package find it. PLANTED=regexp tries only those whose description
// it matches.
func TestPlantedFaults(t *testing.T) {
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	only := regexp.MustCompile(os.Getenv("PLANTED"))
	tried, found := 0, 0
	sound := map[string]bool{}
	for _, p := range faults {
		if !only.MatchString(p.what) {
			continue
		}
		tried++
		// Tests that fail without a fault find nothing.
		if env := p.settings(); !sound[env[0]] {
			if out, err := suite(context.Background(), root, env).CombinedOutput(); err != nil {
				t.Fatalf("%s, without any fault: %v\n%s", env[0], err, out)
			}
			sound[env[0]] = true
		}
		by, took, err := p.find(t, root)
		if err != nil {
			t.Errorf("%s (%s): %v", p.what, p.file, err)
			by = "NOT FOUND"
		} else {
			found++
		}
		line := fmt.Sprintf("%-90s %-32s %-28s %5.1f s\n", p.what, p.file, by, took.Seconds())
		fmt.Print(line)
		table.WriteString(line)
	}
	if tried == 0 {
		t.Errorf("PLANTED=%s fits no fault", only)
	}
	t.Logf("%d of %d planted faults found\n%s", found, tried, table.String())
}

// settings are the engines that show a fault, for the environment.
func (p planted) settings() []string {
	engines, processor := "reference,portable", "portable"
	switch {
	case strings.Contains(p.file, "nvptx") || strings.HasPrefix(p.file, "gpu_"):
		engines = "reference,sim:quadro-k2000"
	case strings.Contains(p.file, "amd64") || slices.Contains(machineCode, p.file):
		engines, processor = "reference,avx512,avx2", ""
	}
	return []string{"ENGINES=" + engines, engineVariable + "=" + processor}
}

// suite is the command that runs the tests.
func suite(ctx context.Context, root string, env []string, args ...string) *exec.Cmd {
	args = append([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout=3m", "-skip", notSuite}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./gpukit")...)
	cmd.Dir = filepath.Dir(root)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// find runs the tests on the faulty file; the error says that they did not fail.
func (p planted) find(t *testing.T, root string) (by string, took time.Duration, err error) {
	file := filepath.Join(root, filepath.FromSlash(p.file))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", 0, err
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		return "", 0, fmt.Errorf("%q is there %d times, so the fault cannot be planted", p.old, n)
	}
	dir := t.TempDir()
	faulty := filepath.Join(dir, "faulty.go")
	changed := strings.Replace(string(text), p.old, p.new, 1)
	for _, pkg := range []string{"math", "strings"} {
		if strings.Contains(p.new, pkg+".") && !strings.Contains(changed, "\t\""+pkg+"\"\n") && !strings.Contains(changed, "import \""+pkg+"\"") {
			changed = regexp.MustCompile(`(?m)^package \w+$`).ReplaceAllString(changed, "$0\n\nimport \""+pkg+"\"\n")
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: faulty}})
	if err != nil {
		return "", 0, err
	}
	for name, text := range map[string]string{faulty: changed, filepath.Join(dir, "overlay.json"): string(overlay)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", 0, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := suite(ctx, root, p.settings(), "-overlay", filepath.Join(dir, "overlay.json"))
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took = time.Since(start)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", took, errors.New("no test failed")
	case !errors.As(err, &exit) || ctx.Err() != nil:
		return "", took, err
	case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
		return "", took, fmt.Errorf("the fault does not compile:\n%s", out)
	}
	if strings.Contains(string(out), "panic: ") {
		by = "a panic"
	}
	if m := failedTest.FindStringSubmatch(string(out)); m != nil {
		by = m[1]
	}
	if by == "" {
		return "", took, fmt.Errorf("the tests ended before any of them failed:\n%s", out)
	}
	if m := testedFor.FindStringSubmatch(string(out)); m != nil {
		if s, err := strconv.ParseFloat(m[1], 64); err == nil && s > 600 {
			return by, took, fmt.Errorf("it took %v s to find", s)
		}
	}
	return by, took, nil
}
