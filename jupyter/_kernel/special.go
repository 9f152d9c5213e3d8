//go:build go1.21

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gpunotes/gpukit"
	"gpunotes/jupyter/cell"
)

const specialHelp = `special lines at the top of a cell:
%expect-error         the cell is meant to fail; its error is shown as output
%%time                how long the cell takes: on the clock, on the processors; and the memory it asks for
%%bench [runs]        run the cell again and again, for a second or so often; shows the time of one run
%devices              the devices that gpukit.Open knows on this machine
%versions             a table of what runs here: gpunotes, Go, libraries, processor, GPU driver
%errcheck on|off      off: a result that is an error no longer stops the cell, from here on
%cd [path]            change the directory
%help                 this text
$command              run a line of the shell: $ls *.go | wc -l
?name                 what a name stands for, with its documentation; also name? alone in a cell
`

// how says in which way a cell is to be run.
type how struct {
	time   bool
	bench  bool
	rounds int // of bench; 0: as many as fit into a second
}

// evaluate runs the text of a cell: special lines, Go, and the rendering of
// the last value.
func (k *kernel) evaluate(code string) (data Data, failed *cell.Error) {
	rest, expect, specials := cell.Directives(code)
	var way how
	for _, s := range specials {
		if failed = k.special(s, code, &way); failed != nil {
			break
		}
	}
	if failed == nil {
		var res cell.Result
		measured := stopwatch()
		if res, failed = k.session.Run(k.count, rest); failed == nil && len(res.Values) > 0 && !way.bench {
			rendered := new(Data)
			failed = k.session.Guard(func() (failed *cell.Error) {
				k.session.Drawing(func() { *rendered, failed = k.render(res) })
				return failed
			})
			if failed == nil {
				data = *rendered
			}
			if failed != nil && len(failed.Frames) == 0 {
				failed.Frames = k.session.Last()
			}
		}
		if way.time {
			k.print(measured())
		}
		if way.bench && failed == nil {
			failed = k.bench(way.rounds)
		}
	}
	switch {
	case expect && failed == nil:
		return Data{}, &cell.Error{
			Name:    "NoError",
			Message: "this cell begins with " + cell.ExpectError + ", but nothing in it failed",
			Frames:  cell.At(k.count, 1, code),
		}
	case expect && !failed.Interrupted:
		fmt.Fprintln(os.Stderr, strings.Join(failed.Traceback(), "\n"))
		return Data{}, nil
	case failed != nil:
		return Data{}, failed
	}
	return data, nil
}

func (k *kernel) print(text string) { _, _ = os.Stdout.WriteString(text) } // to our own pipe

// stopwatch starts measuring; the returned function says what was measured.
func stopwatch() func() string {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, used := time.Now(), processorTime()
	return func() string {
		wall, cpu := time.Since(start), processorTime()-used
		runtime.ReadMemStats(&after)
		text := fmt.Sprintf("%s on the clock", duration(wall))
		if cpu > 0 {
			text += fmt.Sprintf(", %s of processors", duration(cpu))
		}
		return text + fmt.Sprintf(", %s of memory in %d pieces\n", cell.BytesText(float64(after.TotalAlloc-before.TotalAlloc)), after.Mallocs-before.Mallocs)
	}
}

func (k *kernel) bench(rounds int) *cell.Error {
	b, failed := k.session.Again(rounds, time.Second)
	if failed != nil {
		return failed
	}
	k.print(fmt.Sprintf("%s for one run (median of %d; mean %s ± %s, best %s)\n",
		duration(b.Median), b.Rounds, duration(b.Mean), duration(b.Stddev), duration(b.Min)))
	return nil
}

// duration is a time with three digits.
func duration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= u.unit {
			return fmt.Sprintf("%.3g %s", float64(d)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}

// special runs one special line.
func (k *kernel) special(s cell.Special, code string, way *how) *cell.Error {
	refuse := func(format string, args ...interface{}) *cell.Error {
		return &cell.Error{Name: "SpecialError", Message: fmt.Sprintf(format, args...)}
	}
	failed := k.session.Guard(func() *cell.Error {
		words := strings.Fields(s.Text)
		word, args := words[0], words[1:]
		switch {
		case s.Text[0] == '$':
			return k.shell(strings.TrimSpace(s.Text[1:]))
		case s.Text[0] == '?':
			return k.page(strings.TrimSpace(strings.Trim(s.Text, "?")))
		}
		most := map[string]int{"%help": 0, "%devices": 0, "%versions": 0, "%%time": 0, "%%bench": 1, "%errcheck": 1, "%cd": 1, cell.ExpectError: 0}
		n, known := most[word]
		switch {
		case !known:
			return refuse("unknown special line %q; %%help lists them", s.Text)
		case word == "%cd":
			args = []string{strings.TrimSpace(strings.TrimPrefix(s.Text, word))} // it may have blanks
		case len(args) > n && n == 0:
			return refuse("%s takes no argument; write it alone on its line", word)
		case len(args) > n:
			return refuse("%s takes one argument, not %d", word, len(args))
		}
		switch word {
		case "%help":
			k.print(specialHelp)
		case "%devices":
			for _, d := range gpukit.Devices() {
				k.print(d.String() + "\n")
			}
		case "%versions":
			if err := k.versions(); err != nil {
				return refuse("%%versions: %v", err)
			}
		case "%%time":
			way.time = true
		case "%%bench":
			way.bench = true
			if len(args) == 1 {
				n, err := strconv.Atoi(args[0])
				if err != nil || n < 1 {
					return refuse("%%%%bench %s: the number of runs is an integer from 1 on", args[0])
				}
				way.rounds = n
			}
		case "%errcheck":
			if len(args) != 1 || args[0] != "on" && args[0] != "off" {
				return refuse("write %%errcheck on or %%errcheck off")
			}
			k.session.Unchecked = args[0] == "off"
		case "%cd":
			return changeDirectory(args[0])
		case cell.ExpectError:
			return refuse("%s must be the first line of the cell", word)
		}
		return nil
	})
	if failed != nil && len(failed.Frames) == 0 {
		failed.Frames = cell.At(k.count, s.Line, code)
	}
	return failed
}

func changeDirectory(path string) *cell.Error {
	var err error
	if path == "" {
		if path, err = os.UserHomeDir(); err != nil {
			return &cell.Error{Name: "SpecialError", Message: fmt.Sprintf("%%cd: the home directory is unknown: %v", err)}
		}
	}
	if err := os.Chdir(path); err != nil {
		return &cell.Error{Name: "SpecialError", Message: fmt.Sprintf("%%cd %s: %v", path, err)}
	}
	return nil
}

// shell runs a line of the system's shell; the Stop button ends it with all that it started.
func (k *kernel) shell(line string) *cell.Error {
	if line == "" {
		return nil
	}
	cmd := exec.Command("/bin/sh", "-c", line)
	if runtime.GOOS == "windows" {
		cmd = exec.Command("cmd", "/C", line)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return &cell.Error{Name: "CommandError", Message: fmt.Sprintf("the shell cannot be started: %v", err)}
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if k.session.Interrupted() {
					killGroup(cmd)
					return
				}
			}
		}
	}()
	err := cmd.Wait()
	close(done)
	if k.session.Interrupted() {
		return &cell.Error{Name: "Interrupted", Message: "interrupted", Interrupted: true}
	}
	if err != nil {
		return &cell.Error{Name: "CommandError", Message: fmt.Sprintf("%s: %v", line, err)}
	}
	return nil
}

// page answers a question about a name.
func (k *kernel) page(name string) *cell.Error {
	if name == "" {
		return &cell.Error{Name: "NameError", Message: "write ?name; %help lists the special lines"}
	}
	text, found := k.describe(name, len([]rune(name)))
	if !found {
		return &cell.Error{Name: "NameError", Message: fmt.Sprintf("nothing is known about %q; has the cell that declares or imports it been run?", name)}
	}
	k.pages = append(k.pages, text)
	return nil
}

// payload is what the front end is to do after the cell: show the answers to questions.
func (k *kernel) payload() []interface{} {
	list := []interface{}{}
	for _, data := range k.pages {
		list = append(list, map[string]interface{}{"source": "page", "data": data, "start": 0})
	}
	return list
}
