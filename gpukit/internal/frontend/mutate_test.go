package frontend

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestMutants compiles programs with a few tokens exchanged: most are wrong
// in some way, and each is either compiled or refused with a position.
func TestMutants(t *testing.T) {
	arrays, err := os.ReadFile("arrays_native_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(arrays), "\n)\n")
	src := nativeText(t) + body
	for i, k := range kernels {
		// Names that several kernels declare mean the last of them.
		src += "\n" + strings.NewReplacer("func f(", "func tKernel"+strconv.Itoa(i)+"(").Replace(k.src)
	}
	for _, c := range refusals {
		if !strings.Contains(c.src, "import") && c.code != CodeSyntax {
			src += "\n" + strings.NewReplacer(";", "\n", "func f(", "func tF(").Replace(c.src)
		}
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "f.go", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var pieces [][]string // tokens of each declaration
	var pool []string
	for _, d := range file.Decls[1:] {
		toks := tokens(src[fset.Position(d.Pos()).Offset:fset.Position(d.End()).Offset])
		pieces = append(pieces, toks)
		pool = append(pool, toks...)
	}
	rnd := rand.New(rand.NewSource(3))
	compiled, refused := 0, 0
	for range 30 {
		var mutant strings.Builder
		mutant.WriteString("package p\n")
		for _, toks := range pieces {
			m := strings.Join(toks, " ")
			if rnd.Intn(3) > 0 {
				for range 8 { // until one parses
					mt := append([]string(nil), toks...)
					mt[1+rnd.Intn(len(mt)-1)] = pool[rnd.Intn(len(pool))]
					try := strings.Join(mt, " ")
					if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+try, parser.SkipObjectResolution); err == nil {
						m = try
						break
					}
				}
			}
			mutant.WriteString(m + "\n")
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "mutant", mutant.String(), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		decls := map[string]Decl{}
		imports := map[string]string{"math": "math", "bits": bitsPath, "atomic": atomicPath, "simt": simtPath}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				decls[d.Name.Name] = Decl{Name: d.Name.Name, Func: d, Imports: imports}
			case *ast.GenDecl:
				for _, sp := range d.Specs {
					for _, id := range specNames(sp) {
						decls[id.Name] = Decl{Name: id.Name, Gen: d, Imports: imports, Constant: d.Tok == token.VAR}
					}
				}
			}
		}
		for _, d := range decls {
			if d.Func == nil {
				continue
			}
			_, err := Compile(Input{Decl: d.Func, Fset: fset, Imports: imports,
				Lookup: func(name string) (Decl, bool) { d, ok := decls[name]; return d, ok }})
			if err == nil {
				compiled++
				continue
			}
			refused++
			for _, x := range err.(Diagnostics) {
				if x.Code == CodeInternal || !x.Pos.IsValid() || x.Help == "" {
					t.Errorf("%s: %v", x.Code, x)
				}
			}
		}
	}
	if compiled < 500 || refused < 100 {
		t.Errorf("%d compiled, %d refused", compiled, refused)
	}
}

func tokens(src string) []string {
	var toks []string
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(src)), []byte(src), nil, 0)
	for {
		_, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return toks
		case tok == token.SEMICOLON:
			lit = ";"
		case tok.IsOperator():
			lit = tok.String()
		}
		toks = append(toks, lit)
	}
}
