package cell

import (
	"fmt"
	"regexp"
	"slices"
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
	{`not a type: (\w+)\.(\w+) <\*ast\.SelectorExpr>$`, "", "the package $1, as cells see it, has no $2 (names newer than Go 1.17 are missing)"},
	{`expected '\(', found '\['$`, `^\s*func \w+\[`, "generic functions are not in the notebook's dialect (Go 1.17): write one function for each type"},
	{`expected '\]', found`, `^\s*type \w+\[`, "generic types are not in the notebook's dialect (Go 1.17): write one type for each case"},
	{`expected 'IDENT', found '\{'$`, `^\s*func\s*\(`, "at the start of a statement, put a function literal in parentheses: (func() { ... })()"},
	{`expected 1 expression$`, `,`, "a cell shows one value: write fmt.Println(a, b), or one expression per cell"},
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
	return msg
}

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
	return "; add it to jupyter/bindings and install the kernel again"
}
