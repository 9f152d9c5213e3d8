package gpukit

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gpunotes/gpukit/simt"
)

// pages are the documents that these tests hold to what is there.
var pages = []string{"README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md", "docker/README.md", "gpukit/README.md", "gpukit/LANGUAGE.md",
	"gpukit/internal/driver/cuda/README.md", "jupyter/README.md"}

// pageText is a page of the repository, by its path from the top.
func pageText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A section is what stands from one heading of the second level to the next; the
// first is what stands before them, with the title.
type section struct{ heading, text string }

func sectionsOf(text string) []section {
	var all []section
	fenced := false
	for line := range strings.Lines(text) {
		fenced = fenced != strings.HasPrefix(line, "```")
		if len(all) == 0 || !fenced && strings.HasPrefix(line, "## ") {
			all = append(all, section{heading: strings.TrimSpace(line)})
		}
		all[len(all)-1].text += line
	}
	return all
}

func sectionOf(t *testing.T, page, heading string) string {
	t.Helper()
	for _, s := range sectionsOf(pageText(t, page)) {
		if s.heading == "## "+heading {
			return s.text
		}
	}
	t.Fatalf("%s has no section %q", page, heading)
	return ""
}

// rowsOf are the cells of the rows of all tables in text, without the lines that
// underline headers.
func rowsOf(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.Trim(line, "|-: ") == "" {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)|<img src="([^"]+)"`)
	quoted       = regexp.MustCompile("`([^`\n]+)`")
	goFile       = regexp.MustCompile(`^[\w./]*\w\.go$`)
	testName     = regexp.MustCompile(`^(Test|Example|Benchmark)[A-Z]\w*$`)
	makeGoal     = regexp.MustCompile("(?m)(?:^    |`)make ([a-z][a-z0-9-]*)")
	definition   = regexp.MustCompile(`(?m)^func ((?:Test|Example|Benchmark)\w+)\(`)
	notAnchor    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// What pages link to is there, as are files and tests that they name in backquotes,
// and targets of make.
func TestPagesNameWhatIsThere(t *testing.T) {
	var files []string
	tests := map[string]bool{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "artefacts" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir
		} else if filepath.Ext(name) == ".go" {
			files = append(files, "/"+strings.TrimPrefix(filepath.ToSlash(file), "../"))
			if strings.HasSuffix(name, "_test.go") {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
					tests[m[1]] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// gpu_nocuda.go sends its reader to this section.
	if s := sectionOf(t, "README.md", "On an NVIDIA GPU"); !strings.Contains(s, "CGO_CFLAGS=") || !strings.Contains(s, "go build -tags cuda") {
		t.Error("the README does not say how to build a program with CUDA")
	}
	makefile := pageText(t, "Makefile")
	for _, page := range pages {
		text := pageText(t, page)
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1]+m[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := page
			if target != "" {
				to = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join("..", to)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1]+m[2])
			} else if anchor != "" && !slices.Contains(anchorsOf(pageText(t, to)), anchor) {
				t.Errorf("%s links to %s, which has no heading #%s", page, to, anchor)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			switch name := m[1]; {
			case goFile.MatchString(name) && name != "main.go" && !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "/"+name) }):
				t.Errorf("%s names %s: there is no such file", page, name)
			case testName.MatchString(name) && !tests[name]:
				t.Errorf("%s names %s: there is no such test", page, name)
			}
		}
		for _, m := range makeGoal.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^([\w -]+ )?` + m[1] + `( [\w -]+)?:`).MatchString(makefile) {
				t.Errorf("%s names make %s: there is no such goal", page, m[1])
			}
		}
	}
}

// anchorsOf are the names that GitHub gives the headings of a page.
func anchorsOf(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			all = append(all, strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), ""), " ", "-"))
		}
	}
	return all
}

// The map has each room once, and no room that is not there.
func TestMapNamesEveryRoom(t *testing.T) {
	rooms := map[string]bool{}
	_, list, _ := strings.Cut(sectionOf(t, "gpukit/README.md", "The rooms"), "\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		room := strings.Fields(line)[0]
		room = strings.Replace(room, "...", "internal/driver", min(1, strings.Count(room, ".../")))
		if !strings.HasPrefix(room, "gpukit") {
			room = path.Join("gpukit", room)
		}
		if rooms[room] {
			t.Errorf("%s stands there twice", room)
		}
		rooms[room] = true
		if info, err := os.Stat(filepath.Join("..", strings.TrimSuffix(room, "/..."))); err != nil || !info.IsDir() {
			t.Errorf("there is no room %s", room)
		}
	}
	kernel := sectionOf(t, "jupyter/README.md", "What is where")
	for _, pkg := range slices.Sorted(maps.Keys(policy)) {
		if !rooms[pkg] && !rooms[path.Dir(pkg)+"/..."] && !rooms[pkg+"/..."] && !strings.HasPrefix(pkg, "jupyter/") {
			t.Errorf("gpukit/README.md does not name package %s", pkg)
		}
		if room, of, _ := strings.Cut(strings.TrimPrefix(pkg, "jupyter/"), "/"); room != pkg && of == "" && !strings.Contains(kernel, "| `"+room+"/`") {
			t.Errorf("jupyter/README.md does not name package %s", pkg)
		}
	}
}

// The README's table of this CPU has the figures of PEERS.md.
func TestReadmeShowsThePeers(t *testing.T) {
	columns := []struct {
		name string
		of   func(peer string) bool
	}{
		{"best C", func(p string) bool {
			return strings.HasPrefix(p, "gcc ") || strings.HasPrefix(p, "by hand") || strings.HasPrefix(p, "best C")
		}},
		{"numba", func(p string) bool { return strings.HasPrefix(p, "numba ") }},
		{"numpy", func(p string) bool { return strings.HasPrefix(p, "numpy ") }},
		{"plain Go", func(p string) bool { return strings.HasPrefix(p, "plain Go") }},
	}
	peers := rowsOf(pageText(t, "gpukit/cpubench/PEERS.md"))
	rows := rowsOf(sectionOf(t, "README.md", "On this CPU"))
	if len(rows) < 9 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[1:] {
		want := []string{row[0]}
		for _, c := range columns {
			best, cell := 0.0, "-" // of the fastest peer
			for _, p := range peers {
				if len(p) > 5 && p[0] == row[0] && p[1] == "1" && c.of(p[3]) {
					ratio := strings.Trim(p[5], "*")
					if x, err := strconv.ParseFloat(ratio, 64); err == nil && x > best {
						best, cell = x, ratio
					}
				}
			}
			want = append(want, cell)
		}
		if !slices.Equal(row, want) {
			t.Errorf("README has | %s |, PEERS.md | %s |", strings.Join(row, " | "), strings.Join(want, " | "))
		}
	}
}

// The README's table of the kernel is part of the one in jupyter/README.md.
func TestReadmeShowsTheKernel(t *testing.T) {
	all := rowsOf(sectionOf(t, "jupyter/README.md", "Beside gophernotes"))
	rows := rowsOf(sectionOf(t, "README.md", "The kernel beside gophernotes"))
	if len(rows) < 8 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		if !slices.ContainsFunc(all, func(r []string) bool { return slices.Equal(r, row) }) {
			t.Errorf("jupyter/README.md does not have the row | %s |", strings.Join(row, " | "))
		}
	}
}

// The README lists all notebooks, by their titles.
func TestReadmeListsTheNotebooks(t *testing.T) {
	files, err := filepath.Glob("../notebooks/[0-9][0-9]-*.ipynb")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var want []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var nb struct {
			Cells []struct{ Source any }
		}
		if err := json.Unmarshal(text, &nb); err != nil || len(nb.Cells) == 0 {
			t.Fatalf("%s: %v", file, err)
		}
		title := fmt.Sprint(nb.Cells[0].Source)
		if lines, ok := nb.Cells[0].Source.([]any); ok {
			title = fmt.Sprint(lines[0])
		}
		title, _, _ = strings.Cut(strings.TrimPrefix(title, "# "), "\n")
		want = append(want, fmt.Sprintf("[%s](notebooks/%s)", title, filepath.Base(file)))
	}
	var got []string
	for _, row := range rowsOf(sectionOf(t, "README.md", "The notebooks"))[1:] {
		got = append(got, row[0])
	}
	if !slices.Equal(got, want) {
		t.Errorf("README lists\n%s\nthere are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var (
	translated  = regexp.MustCompile(`<!-- en: ([0-9a-f]{8}) -->\n`)
	codeBlock   = regexp.MustCompile("(?m)^```(?:.*\n)+?```$|(?:^    .*\n)+")
	fencedBlock = regexp.MustCompile("(?m)^```(\\w+)\n((?:.*\n)+?)```$")
	figure      = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
)

// README.zh.md says of each section which English text it translates, by a hash:
// who changes one changes the other. Code, figures and links are the same.
func TestChineseReadme(t *testing.T) {
	english, chinese := sectionsOf(pageText(t, "README.md")), sectionsOf(pageText(t, "README.zh.md"))
	if len(english) != len(chinese) {
		t.Fatalf("%d sections in English, %d in Chinese", len(english), len(chinese))
	}
	sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
	for i, en := range english {
		zh := chinese[i]
		hash := fmt.Sprintf("%x", sha256.Sum256([]byte(en.text)))[:8]
		if m := translated.FindStringSubmatch(zh.text); m == nil || m[1] != hash {
			t.Errorf("README.zh.md, %q: renew the translation of %q, then let it say <!-- en: %s -->", zh.heading, en.heading, hash)
		}
		code := func(s string) []string { return codeBlock.FindAllString(s, -1) }
		if a, b := code(en.text), code(zh.text); !slices.Equal(a, b) {
			t.Errorf("%q and %q have other code:\n%q\n%q", en.heading, zh.heading, a, b)
		}
		links := func(s string) (to []string) {
			for _, m := range markdownLink.FindAllStringSubmatch(s, -1) {
				to = append(to, strings.TrimSuffix(strings.Replace(m[1]+m[2], "README.zh.md", "README.md", 1), "README.md"))
			}
			return sorted(to)
		}
		if a, b := links(en.text), links(zh.text); !slices.Equal(a, b) {
			t.Errorf("%q and %q have other links:\n%q\n%q", en.heading, zh.heading, a, b)
		}
		figures := func(s string) []string {
			return sorted(figure.FindAllString(translated.ReplaceAllString(s, ""), -1))
		}
		if a, b := figures(en.text), figures(zh.text); !slices.Equal(a, b) {
			t.Errorf("%q and %q have other figures:\n%q\n%q", en.heading, zh.heading, a, b)
		}
		a, b := rowsOf(en.text), rowsOf(zh.text)
		if len(a) != len(b) {
			t.Errorf("%q: %d rows, %d in Chinese", en.heading, len(a), len(b))
			continue
		}
		for k := range a {
			if x, y := figures(strings.Join(a[k], "|")), figures(strings.Join(b[k], "|")); !slices.Equal(x, y) || len(a[k]) != len(b[k]) {
				t.Errorf("%q: row %q, in Chinese %q", en.heading, a[k], b[k])
			}
		}
	}
}

// The program of gpukit/README.md, made by its commands in a folder of its own, prints
// what is said there; with the second file it does so where there is no source. No
// network is needed: all modules are here.
func TestPlainProgram(t *testing.T) {
	text := sectionOf(t, "gpukit/README.md", "From a Go program")
	blocks := map[string][]string{}
	for _, m := range fencedBlock.FindAllStringSubmatch(text, -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	if len(blocks["go"]) != 2 || len(blocks["sh"]) != 1 {
		t.Fatalf("the page has %d blocks of Go and %d of commands", len(blocks["go"]), len(blocks["sh"]))
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		c := exec.Command(args[0], args[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local")
		var stderr strings.Builder
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
		}
		return strings.Join(strings.Fields(string(out)), ", ")
	}
	write("main.go", blocks["go"][0])
	var out string
	for line := range strings.Lines(blocks["sh"][0]) {
		out = run(dir, strings.Fields(strings.Replace(line, "gpunotes=../gpunotes", "gpunotes="+root, 1))...)
	}
	const want = "0.3333, 2.6667, 9.0000"
	if out != want {
		t.Errorf("it prints %s", out)
	}
	if !strings.Contains(text, "0.3333, 2.6667 and 9.0000") {
		t.Error("the page says something else")
	}
	write("embed.go", blocks["go"][1])
	program := filepath.Join(t.TempDir(), "area")
	run(dir, "go", "build", "-o", program)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if out := run(filepath.Dir(program), program); out != want {
		t.Errorf("without its source it prints %s", out)
	}
}

func power(x float64, n int) float64 { // Vectorize: one element
	y := 1.0
	for i := 0; i < n; i++ {
		y *= x
	}
	return y
}

func differences(x, out []float64) { // GUVectorize, with the layout "(n)->(n)": one slice
	for i := range out {
		out[i] = x[(i+1)%len(x)] - x[i]
	}
}

func reverse(x, out []float64) { // Launch: one thread of a grid
	if i := simt.Grid1(); i < len(x) {
		out[i] = x[len(x)-1-i]
	}
}

// The functions of LANGUAGE.md are those above, and run as their comments say.
func TestFunctionsOfLanguagePage(t *testing.T) {
	here, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fencedBlock.FindAllStringSubmatch(pageText(t, "gpukit/LANGUAGE.md"), -1)
	if len(blocks) != 1 || !strings.Contains(string(here), "\n"+blocks[0][2]) {
		t.Errorf("the page has other functions: %q", blocks)
	}
	x := []float64{0.1, 0.2, 0.4}
	for _, name := range []string{"cpu", "sim:quadro-k2000"} {
		gpu := MustOpen(name)
		defer gpu.Close()
		z, err := gpu.Vectorize(power, x, 3)
		if err != nil || !slices.EqualFunc(z.Float64s(), x, func(z, x float64) bool { return z == x*x*x }) {
			t.Errorf("%s: %v, %v", name, z, err)
		}
		d, err := gpu.GUVectorize(differences, "(n)->(n)", x)
		if err != nil || !slices.Equal(d.Float64s(), []float64{x[1] - x[0], x[2] - x[1], x[0] - x[2]}) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
		out := make([]float64, 3)
		if err := gpu.Launch(reverse, Blocks(2), Threads(2), x, out); err != nil || !slices.Equal(out, []float64{0.4, 0.2, 0.1}) {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
}
