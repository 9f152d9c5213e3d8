package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// changes are where our kernel means to differ from gophernotes in what its
// tests look at.
var changes = []struct{ old, new, why string }{
	{"\"os\"\n\t\"strings\"", "\"os\"\n\t\"os/exec\"\n\t\"strings\"", "the next one"},
	{"go runKernel(connectionFile)", "kernel := exec.Command(os.Getenv(\"GPUNOTES_GOPHERNOTES\"), connectionFile)\n\tif err := kernel.Start(); err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer kernel.Process.Kill()",
		"the kernel is a process of its own, as it is in Jupyter"},
	{"\t\t\t`import \"errors\"`,\n\t\t\t\"func a() (interface{}, error) {\"", "\t\t\t`%errcheck off`,\n\t\t\t`import \"errors\"`,\n\t\t\t\"func a() (interface{}, error) {\"",
		"an error that nobody took stops the cell"},
	{"\treturn sub\n", "\tif sub.Header.MsgType == \"iopub_welcome\" {\n\t\treturn client.recvIOSub(t, timeout)\n\t}\n\treturn sub\n", "protocol 5.4 welcomes who subscribes"},
	{`"30 true"`, `"30"`, "what was not asked for is not shown"},
	{`"123 true"`, `"123"`, "what was not asked for is not shown"},
	{`"    3",`, `"    _ = 3",`, "a value in a block that nobody uses is refused, as Go does"},
}

// TestGophernotesOwnTests runs the tests that gophernotes comes with against an
// installed kernel, whose program GPUNOTES_GOPHERNOTES names.
func TestGophernotesOwnTests(t *testing.T) {
	if os.Getenv("GPUNOTES_GOPHERNOTES") == "" {
		t.Skip("set GPUNOTES_GOPHERNOTES to the program of an installed kernel; make test-kernel does")
	}
	p, err := prepare(t.TempDir(), nil, stepwise(t.Output()), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.notes.Dir, "kernel_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	code := string(text)
	for _, c := range changes {
		if strings.Count(code, c.old) != 1 {
			t.Fatalf("their tests do not have %q once (%s)", c.old, c.why)
		}
		code = strings.Replace(code, c.old, c.new, 1)
	}
	if err := os.WriteFile(filepath.Join(p.folder, "kernel_test.go"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.folder, "fixtures"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(filepath.Join(p.folder, "fixtures", "connection_file.json"), filepath.Join(p.notes.Dir, "fixtures", "connection_file.json")); err != nil {
		t.Fatal(err)
	}
	out, err := goTool(p.root, "test", "-trimpath", "-vet=off", "-count=1", "-v", "-modfile="+p.modfile, gophernotes)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestEvaluate", "TestPanicGeneratesError", "TestPrintStdout", "TestPrintStderr"} {
		if !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}
