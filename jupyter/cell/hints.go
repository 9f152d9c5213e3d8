package cell

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cosmos72/gomacro/imports"
)

// hints add to a message of the interpreter what to write instead. Its
// dialect is Go 1.17, and it does not say so. $1... stand for what the pattern
// for the message has found.
var hints = []struct{ message, source, cure string }{
	{`undefined identifier: min$`, "", "min is not in the notebook's dialect (Go 1.17): write math.Min, or an if"},
	{`undefined identifier: max$`, "", "max is not in the notebook's dialect (Go 1.17): write math.Max, or an if"},
	{`undefined identifier: clear$`, "", "clear is not in the notebook's dialect (Go 1.17): make a new map, or write a loop"},
	{`cannot range over (.*) <u?int\d*>$`, "", "range over an integer is not in the notebook's dialect (Go 1.17): write for i := 0; i < $1; i++"},
	{`non-integer slice index: (.*) <\S*int64>$`, "", "write int($1), or declare $1 as int: cells index with int only"},
	{`non-integer slice index: (.*) <\S*int\d*>$`, "", "write int($1), or declare $1 as int: cells index with int only"},
	{`not a type: (\w+)\.(\w+) <\*ast\.SelectorExpr>$`, "", "the package $1, as cells see it, has no $2 (generic functions and types are missing, and in some packages what is newer than Go 1.17)"},
	{`: (undefined identifier|expected)`, `^\s*![\w./]`, "commands of the operating system begin with $$, at the top of a cell: $$ls"},
	{`expected (operand|statement), found '%'`, `^\s*%expect-error\b`, "%expect-error must be the first line of the cell"},
	{`expected (operand|statement), found '%'`, `^\s*%`, "special lines stand at the top of a cell, before any Go; %help lists them"},
	{`: division by zero$`, "", "integers cannot be divided by 0; for a floating-point x/0, divide by a variable that holds 0"},
	{`goto label not found: `, "", "cells know no goto to an earlier line: write a for loop"},
	{`expected '\(', found '\['$`, `^\s*func \w+\[`, "generic functions are not in the notebook's dialect (Go 1.17): write one function for each type"},
	{`expected '\]', found`, `^\s*type \w+\[`, "generic types are not in the notebook's dialect (Go 1.17): write one type for each case"},
	{`expected ('IDENT'|'\('), found '\{'$`, `^\s*func\s*\(`, "at the start of a statement, put a function literal in parentheses: (func() { ... })()"},
	{`expected 1 expression$`, `,`, "a list of values can only be the last line of a cell; elsewhere write fmt.Println(a, b)"},
	{`(to|as) <gpunotes/gpukit\.(Grid|Block)>`, "", "a launch takes a grid and then a block: gpukit.Blocks(3), gpukit.Threads(4)"},
	{`untyped constant .* overflows <int>$`, "", "give the constant a type that holds it, such as float64(...)"},
}

// withHint adds the first hint that fits the message and the source line.
func withHint(msg, line string) string {
	for _, h := range hints {
		re := regexp.MustCompile(h.message)
		m := re.FindStringSubmatchIndex(msg)
		if m == nil || h.source != "" && !regexp.MustCompile(h.source).MatchString(line) {
			continue
		}
		return msg + "\n" + string(re.ExpandString(nil, h.cure, msg, m))
	}
	if m := unknownName.FindStringSubmatch(msg); m != nil {
		name := m[1] + m[2]
		if list := packagesNamed(name); len(list) > 0 && strings.Contains(line, name+".") {
			return msg + "\nimport it first: import " + strings.Join(list, " or ")
		}
	}
	return msg
}

var unknownName = regexp.MustCompile(`undefined (?:identifier: (\w+)$|"(\w+)" in )`)

// packagesNamed lists the import paths of the packages that cells call name.
func packagesNamed(name string) (list []string) {
	for path, p := range imports.Packages {
		if p.Name == name || p.Name == "" && path == name {
			list = append(list, strconv.Quote(path))
		}
	}
	slices.Sort(list)
	return list
}

// wordings turn the interpreter's inner words into those of Go.
var wordings = []struct{ inner, plain string }{
	{`undefined "(\w+)" in (\S+) <\*ast\.\w+>`, "undefined: $1 in $2"},
	{`not a type: (\w+\.\w+) <\*ast\.SelectorExpr>`, "undefined: $1"},
	{`not a package: "\w+" in (\S+) <\*ast\.\w+>`, "undefined: $1: it has no such field or method"},
	{` <\*ast\.\w+>`, ""},
	{`untyped constant \{\w+ (.*?)\}`, "constant $1"},
	{`untyped\.Lit`, "constant"},
}

var wordingPatterns = func() (list []*regexp.Regexp) {
	for _, w := range wordings {
		list = append(list, regexp.MustCompile(w.inner))
	}
	return list
}()

var (
	callOf     = regexp.MustCompile(`arguments in call to ([\w.]+):`)
	lastWanted = regexp.MustCompile(`(\n\s*want )(\(.*)\[\]([^,]+\))`)
)

// plain rewords a message of the interpreter's compiler.
func (s *Session) plain(msg string) string {
	for i, re := range wordingPatterns {
		msg = re.ReplaceAllString(msg, wordings[i].plain)
	}
	if m := unknownName.FindStringSubmatch(msg); m != nil && m[1] != "" && s.ir.Comp.TryResolveType(m[1]) != nil {
		msg += fmt.Sprintf("\n%s is a type and no value; ?%s describes it", m[1], m[1])
	}
	// gomacro does not say that a function takes any number of arguments.
	if m := callOf.FindStringSubmatch(msg); m != nil {
		text, _ := s.declaration(strings.Split(m[1], "."))
		msg = lastWanted.ReplaceAllStringFunc(msg, func(want string) string {
			parts := lastWanted.FindStringSubmatch(want)
			params := parts[2] + "..." + parts[3]
			// A method of compiled code is listed with its receiver.
			if strings.Contains(strings.ReplaceAll(text, "interface {}", "interface{}"), strings.TrimPrefix(params, "(")) {
				return parts[1] + params
			}
			return want
		})
	}
	return msg
}

// generic are the packages of the standard library that are all generic functions.
var generic = map[string]bool{"cmp": true, "iter": true, "maps": true, "slices": true, "unique": true, "weak": true}

// importHint names the packages that the user may have meant.
func importHint(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	var near []string
	for p := range imports.Packages {
		if p == last || strings.HasSuffix(p, "/"+last) {
			near = append(near, fmt.Sprintf("%q", p))
		}
	}
	slices.Sort(near)
	if len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	if generic[path] {
		return "; it has generic functions only, which cells cannot call: write a loop"
	}
	return "; to build it in, run in the source of gpunotes: go run ./jupyter install --with " + path + " (a directory such as ./mine for a module of your own), and restart the kernel"
}
