package cell

import (
	"fmt"
	"go/token"
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
	{`undefined: |: expected`, `^\s*![\w./]`, "commands of the operating system begin with $$, at the top of a cell: $$ls"},
	{`expected (operand|statement), found '%'`, `^\s*%expect-error\b`, "%expect-error must be the first line of the cell"},
	{`expected (operand|statement), found '%'`, `^\s*%`, "special lines stand at the top of a cell, before any Go; %help lists them"},
	{`\bdivision by zero$`, "", "integers cannot be divided by 0; for a floating-point x/0, divide by a variable that holds 0"},
	{`label \w+ not declared$`, `\bgoto\b`, "a goto at the top of a cell finds no label there: write a for loop, or put the statements into a function"},
	{`goto label not found: `, "", "cells know no goto: write a for loop, or if and else"},
	{`expected '\(', found '\['$`, `^\s*func \w+\[`, "generic functions are not in the notebook's dialect (Go 1.17): write one function for each type"},
	{`expected '\]', found`, `^\s*type \w+\[`, "generic types are not in the notebook's dialect (Go 1.17): write one type for each case"},
	{`expected ('IDENT'|'\('), found '\{'$`, `^\s*func\s*\(`, "at the start of a statement, put a function literal in parentheses: (func() { ... })()"},
	{`expected 1 expression$`, `,`, "a list of values can only be the last line of a cell; elsewhere write fmt.Println(a, b)"},
	{`as gpukit\.(Grid|Block) value`, "", "a launch takes a grid and then a block: gpukit.Blocks(3), gpukit.Threads(4)"},
	{`mismatched types (untyped )?string and |mismatched types .* and (untyped )?string\)$`, "", "a number becomes text with fmt.Sprint, text becomes a number with strconv.Atoi or strconv.ParseFloat"},
	{`cannot use .* \((untyped (int|float|rune) constant.*|(variable|value|constant.*) of type u?(int|float)\d*)\) as string value`, "", "a number becomes text with fmt.Sprint; the character of a code with string(rune(65))"},
	{`cannot use (.*) \((?:variable|value) of type u?int\d*\) as (float\d\d) value`, "", "write $2($1)"},
	{`cannot use (.*) \((?:variable|value) of type float\d\d\) as (u?int\d*) value`, "", "write $2($1), which cuts off what is behind the point"},
	{`mismatched types int and time\.Duration\)|mismatched types time\.Duration and int\)`, "", "write time.Duration(n) for the number n"},
	{`mismatched types (u?int\d*|float\d\d) and (u?int\d*|float\d\d)\)$`, "", "Go converts no numbers by itself: write $1(...) or $2(...) around one of them"},
	{`\(untyped float constant\) truncated to int$`, `[-+*/%<>]`, "an integer with a fraction: write float64(...) around the integer"},
	{`non-boolean condition in `, "", "a condition is a comparison, such as x != 0"},
	{`method \w+ has pointer receiver\)$`, "", "take the address: &x of a variable, &T{...} of a new value"},
	{`^missing return$`, "", "every way through the function must end in a return or a panic"},
	{`cannot convert "[^"]*" \(untyped string constant\) to type (int|float64)$`, "", "text becomes a number with strconv.Atoi or strconv.ParseFloat"},
	{`is not used$`, `==`, "= assigns, == compares"},
	{`expected '\{' in this line$`, "", "a line that is complete ends the statement: put the { at its end"},
	{`expected statement, found 'else'$`, "", "else stands in the line of the } before it"},
	{`expected boolean expression, found simple statement`, `[^=!<>]=[^=]`, "== compares, = assigns"},
	{`not a function: xreflect\.Forward$`, "", "in cells an interface cannot name itself: write interface{} there, and x.(T) where it is used"},
	{`incompatible types in assignment: (\w+) = int\b`, `<<`, "cells shift an int where no type is written: $1(1) << n"},
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

// braceBelow finds the end of the first line of an if, for, switch or select whose {
// stands in a line of its own; 0, 0 if there is none. A line may begin a block of its own:
// ask only of code that cannot be parsed.
func braceBelow(code string) (line, col int) {
	list := lexemes(code)
	head, depth := -1, 0
	for i, l := range list {
		switch l.tok {
		case token.IF, token.FOR, token.SWITCH, token.SELECT:
			head, depth = i, 0
		case token.LPAREN, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACK:
			depth--
		case token.LBRACE:
			if depth == 0 {
				head = -1
			}
		case token.SEMICOLON:
			newline := l.text == "\n"
			if head >= 0 && depth == 0 && newline && i+1 < len(list) && list[i+1].tok == token.LBRACE {
				before := code[:list[i-1].end]
				return 1 + strings.Count(before, "\n"), len(before) - strings.LastIndexByte(before, '\n')
			}
			if newline && depth == 0 {
				head = -1
			}
		}
	}
	return 0, 0
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

// generic are the packages of the standard library that are all generic functions,
// with what there is in cells instead.
var generic = map[string]string{
	"cmp": "write a comparison", "iter": "write a loop", "maps": "write a loop, and sort.Strings for keys in order",
	"slices": "write a loop, and sort.Ints, sort.Float64s, sort.Strings or sort.Slice to sort", "unique": "use a map", "weak": "use a pointer",
}

// unbound are the other packages of the standard library that gomacro does not bring.
// Some of them are there all the same, when the kernel was built with them.
var unbound = strings.Fields(`crypto/ecdh crypto/fips140 crypto/hkdf crypto/hpke crypto/mlkem crypto/pbkdf2 crypto/sha3 debug/buildinfo embed
	go/build/constraint go/doc/comment go/version hash/maphash log/slog net/netip runtime/cgo runtime/coverage runtime/metrics structs syscall
	testing/cryptotest testing/fstest testing/slogtest testing/synctest time/tzdata`)

// missing returns the import path of a package of the standard library that is called
// name and cannot be imported.
func missing(name string) (path string, ok bool) {
	if generic[name] != "" {
		return name, true
	}
	for _, path := range unbound {
		if path == name || strings.HasSuffix(path, "/"+name) {
			return path, true
		}
	}
	return "", false
}

// importHint names the packages that the user may have meant.
func importHint(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	var near, all []string
	for p := range imports.Packages {
		if !importable(p) {
			continue
		}
		all = append(all, p)
		if p == last || strings.HasSuffix(p, "/"+last) {
			near = append(near, fmt.Sprintf("%q", p))
		}
	}
	slices.Sort(near)
	host, _, _ := strings.Cut(path, "/")
	switch {
	case path == "C":
		return "; cells cannot contain C: put it into a package of a module of your own and build that in, with go run ./jupyter install --with ./mine"
	case generic[path] != "":
		return "; it has generic functions only, which cells cannot call: " + generic[path]
	case slices.Contains(unbound, path) || strings.Contains(host, "."):
	case len(near) > 0:
		return "; did you mean " + strings.Join(near, " or ") + "?"
	case !strings.HasPrefix(path, "."):
		if near := nearest(path, all); len(near) > 0 {
			for i := range near {
				near[i] = strconv.Quote(near[i])
			}
			return "; " + didYouMean(near, "")
		}
		return "; the standard library has no such package either: other packages have paths that begin with a host, such as gonum.org/v1/gonum/stat, or belong to a module of your own, which go run ./jupyter install --with ./mine builds in"
	}
	return "; to build it in, run in the source of gpunotes: go run ./jupyter install --with " + path + " (a directory such as ./mine for a module of your own), and restart the kernel"
}
