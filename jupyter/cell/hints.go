package cell

import (
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	{`illegal character U\+003F`, `^\s*\?[\w.]|[\w.]\?\s*$`, "special lines stand at the top of a cell, before any Go; %help lists them"},
	{`illegal character U\+0024`, `^\s*\$`, "special lines stand at the top of a cell, before any Go; %help lists them"},
	{`illegal character U\+003F`, "", "Go has no c ? x : y: write an if"},
	{`expected (operand|statement), found '%'`, `^\s*%`, "special lines stand at the top of a cell, before any Go; %help lists them"},
	{`\bdivision by zero$`, "", "integers cannot be divided by 0; for a floating-point x/0, divide by a variable that holds 0"},
	{`label \w+ not declared$`, `\bgoto\b`, "a goto at the top of a cell finds no label there: write a for loop, or put the statements into a function"},
	{`goto label not found: `, "", "cells know no goto: write a for loop, or if and else"},
	{`expected '\(', found '\['$`, `^\s*func \w+\[`, "generic functions are not in the notebook's dialect (Go 1.17): write one function for each type"},
	{`expected '\]', found`, `^\s*type \w+\[`, "generic types are not in the notebook's dialect (Go 1.17): write one type for each case"},
	{`expected ('IDENT'|'\('), found '\{'$`, `^\s*func\s*\(`, "at the start of a statement, put a function literal in parentheses: (func() { ... })()"},
	{`expected 1 expression$`, `,`, "a list of values can only be the last line of a cell; elsewhere write fmt.Println(a, b)"},
	// Habits of other languages.
	{`expected ';', found `, `^\s*def\s`, "functions are declared with func: func f(x float64) float64 { return x * x }"},
	{`expected ';', found `, `\blambda\b`, "a function without a name is func(x float64) float64 { return x * x }"},
	{`expected '\{', found 'IDENT' in$`, "", "Go's loops are for i := 0; i < n; i++ { ... } and for i, x := range list { ... }"},
	{`expected ';', found `, `^\s*while\b`, "Go's only loop is for: for x < 3 { ... }"},
	{`expected `, `^\s*(from\s+[\w.]+\s+import\b|import\s+[A-Za-z][\w.]*(\s+as\b|\s*$))`, "packages are imported by their path in quotation marks: import \"math\""},
	{`found 'IDENT' (and|or)$`, "", "Go writes && for and, || for or, and ! for not"},
	{`expected ';', found 'IDENT'`, `\bnot\s+\w`, "Go writes && for and, || for or, and ! for not"},
	{`expected ';', found 'IDENT'`, `\belif\b`, "Go writes else if, in the line of the } before it"},
	{`expected ';', found 'if'$`, "", "Go has no x if c else y: write an if"},
	{`expected ';', found 'STRING'|missing ',' in argument list`, `\bf["']`, "values go into text with fmt.Sprint(a, b) or fmt.Sprintf(\"%v of %v\", a, b)"},
	{`expected ';', found 'IDENT'`, `^\s*(let|auto|int|long|float|double|float64|bool|string)\s+\w+\s*=`, "a variable is declared by v := 3, or by var v float64 = 3"},
	{`expected ';', found '(STRING|INT|FLOAT)'`, `^\s*print(ln)?\s`, "write fmt.Println(...)"},
	{`expected '\)', found ':'`, `\bfunc\b`, "a type stands behind its name, without a colon: func f(x float64) float64 { ... }"},
	{`expected '\{', found `, `^\s*for\b.*,`, "the parts of a loop are separated by semicolons: for i := 0; i < n; i++ { ... }"},
	{`expected '\)', found ':='`, `^\s*(for|if|switch)\s*\(`, "loops and conditions have no parentheses around them: for i := 0; i < n; i++ { ... }"},
	{`expected ';', found ','$`, `\bstruct\b`, "fields stand in lines of their own, or are separated by semicolons"},
	{`expected ('\{'|';'), found 'IDENT'`, `^\s*(struct|class)\b`, "write type T struct { ... }"},
	{`expected '\{', found |illegal label declaration$`, `^\s*(if|for|else)\b`, "the body of an if or a loop stands in braces: if x > 3 { ... }"},
	{`expected '==', found '='$`, "", "an assignment has no value: write x, y = 3, 3"},
	{`expected '\]', found ','$`, "", "a list is written with the type of its elements: []float64{1, 2, 3}"},
	{`expected '\)', found ','$`, "", "Go has no tuples: write the values without parentheses around them"},
	{`illegal rune literal$`, "", "text stands in double quotation marks; single ones hold one character"},
	{`found '#'$`, `^\s*#include\b`, "packages are imported: import \"math\""},
	{`(found '#'|illegal character U\+0023.*)$`, "", "comments begin with //"},
	{`expected statement, found '(\+\+|--)'$`, "", "write n$1, as a statement of its own"},
	{`expected ';', found `, `\w(\+\+|--)`, "x++ and x-- are statements of their own and have no value"},
	{`cannot indirect `, `\*\*`, "Go has no **: write x*x, or math.Pow(x, y)"},
	{`operator \^ not defined on `, "", "^ is the exclusive or of integers: write x*x, or math.Pow(x, y)"},
	{`operator % not defined on .*float`, "", "of numbers with a fraction the remainder is math.Mod(x, y)"},
	{`^too many return values\n[^\n]*\n\s*want \(\)$`, "", "a function says the type of its result behind the parameters: func f(x float64) float64; the value of a cell is what stands alone in its last line"},
	{`index -\d+ \(constant of type int\) must not be negative$`, "", "count from the end with len: a[len(a)-1]"},
	{`is not constant$`, `^\s*const\b`, "a const is known before the program runs: write c := ..."},
	{`expected ';', found `, `^\s*__shared__\b`, "shared memory is an array of the kernel: var part [256]float64, and simt.Shared(&part) below it"},
	{`value of type \*\w+\) as \*\w+ value in argument to simt\.`, "", "the type of the element stands in the name of the function: simt.AddFloat64 for a float64"},
	{`cannot use (.*) \(.*\) as display\.Data value`, "", "what is shown is, of a figure, $1.Render()"},
	{`arguments in call to display\.(Show|Update)\b`, "", "write display.$1(\"\", f.Render()) for a figure f; the text names it, to be changed later"},
	// Arrays are no numbers and no slices.
	{`cannot use (.*) \((?:variable|value) of type (?:\*gpukit\.Array|\[\]float64)\) as float64 value in argument to ([\w.]+)$`, "", "a function of one number is applied to all elements by gpu.Vectorize($2, $1)"},
	{`(operator .* not defined on .*|mismatched types .*)\*gpukit\.Array\b`, "", "arrays are computed with element by element: declare func f(x, y float64) float64 { ... } and call gpu.Vectorize(f, a, b)"},
	{`(operator [-+*/%] not defined on .*|mismatched types .*)\[\](float|int|uint)\d*\b`, "", "slices are computed with in a loop, or by gpu.Vectorize(f, a, b) with a func f(x, y float64) float64"},
	{`cannot (index|slice) .*\*gpukit\.Array\)$`, "", "an element is At(i), with one index for each axis; a part is Slice(axis, from, to, step)"},
	{`\*gpukit\.Array\) for built-in len$`, "", "write Size() for the number of elements, Shape() for that along each axis"},
	{`cannot range over .*\*gpukit\.Array\)$`, "", "range over Float64s(), the elements as a slice"},
	{`cannot use (.*) \((?:variable|value) of type \*gpukit\.Array\) as \[\]float64 value`, "", "write $1.Float64s()"},
	{`cannot use (.*) \(.*\) as \*gpukit\.Array value`, "", "write gpukit.FromSlice(...) around a slice, gpukit.Full(v, n) for n times the number v"},
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

var hintPatterns = sync.OnceValue(func() (list []struct{ message, source *regexp.Regexp }) {
	for _, h := range hints {
		list = append(list, struct{ message, source *regexp.Regexp }{regexp.MustCompile(h.message), regexp.MustCompile(h.source)})
	}
	return list
})

// withHint adds the first hint that fits the message and the source line.
func withHint(msg, line string) string {
	for i, p := range hintPatterns() {
		if m := p.message.FindStringSubmatchIndex(msg); m != nil && p.source.MatchString(line) {
			return msg + "\n" + string(p.message.ExpandString(nil, hints[i].cure, msg, m))
		}
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

// Installed are the flags that lead the command install to this kernel, where it would
// not choose that by itself.
var Installed string

func installWith(path string) string {
	return strings.Join(append(append([]string{"go run ./jupyter install"}, strings.Fields(Installed)...), "--with", path), " ")
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
		return "; cells cannot contain C: put it into a package of a module of your own and build that in, with " + installWith("./mine")
	case generic[path] != "":
		return "; it has generic functions only, which cells cannot call: " + generic[path]
	case slices.Contains(unbound, path) || strings.Contains(host, "."):
	case len(near) > 0:
		return "; " + didYouMean(near, "")
	case !strings.HasPrefix(path, "."):
		if near := nearest(path, all); len(near) > 0 {
			for i := range near {
				near[i] = strconv.Quote(near[i])
			}
			return "; " + didYouMean(near, "")
		}
		return "; the standard library has no such package either: other packages have paths that begin with a host, such as gonum.org/v1/gonum/stat, or belong to a module of your own, which " + installWith("./mine") + " builds in"
	}
	return "; to build it in, run in the source of gpunotes: " + installWith(path) + " (a directory such as ./mine for a module of your own), and restart the kernel"
}
