//go:build !race

// Type-checking the standard library from its source is slow under the race
// detector, and has nothing to race.

package raftfsm_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pureImports is all that the cores may import: nothing of it can tell one
// replica from another. Hashes with a seed of the process (hash/maphash) and
// reflection are not among it.
var pureImports = []string{
	"bytes", "cmp", "container/heap", "crypto/md5", "crypto/sha256", "encoding/base64",
	"encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "iter", "maps", "math",
	"math/bits", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// impure are functions of pure packages that read the clock of the machine or
// wait for it.
var impure = []string{
	"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.NewTimer",
	"time.NewTicker", "time.Sleep", "time.Tick", "time.Local",
}

// orderedWalks are the functions that may take a walk over a map, because
// they put its keys in order.
var orderedWalks = []string{"slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc"}

// TestCoresArePure keeps the cores deterministic: no I/O, clock, randomness,
// goroutine, channel or lock; no calculation with floats; no walk over a map in its random order.
func TestCoresArePure(t *testing.T) {
	for _, dir := range []string{"../sqs", "../sns"} {
		for _, problem := range impurities(t, dir) {
			t.Error(problem)
		}
	}
}

// TestPurityTestFindsIt plants what TestCoresArePure looks for.
func TestPurityTestFindsIt(t *testing.T) {
	plants := map[string]string{
		"import":     "import _ \"os\"",
		"go":         "func f() { go f() }",
		"channel":    "var c chan int",
		"clock":      "import \"time\"\n\nvar now = time.Now",
		"map":        "func f(m map[int]int) {\n\tfor range m {\n\t}\n}",
		"keys":       "import \"maps\"\n\nfunc f(m map[int]int) {\n\tfor range maps.Keys(m) {\n\t}\n}",
		"tag":        "type s struct {\n\tA int `json:\"a\"`\n}",
		"float":      "func f(a int) int { return int(float64(a) * 1.5) }",
		"float sum":  "func f(a float64) float64 {\n\ta += 1\n\treturn a\n}",
		"goroutines": "func f(c chan int) {\n\tselect {\n\tcase <-c:\n\t}\n}",
	}
	for name, source := range plants {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "planted.go"), []byte("package planted\n\n"+source+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if len(impurities(t, dir)) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
	clean := "import (\n\t\"maps\"\n\t\"slices\"\n)\n\nfunc f(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "clean.go"), []byte("package clean\n\n"+clean+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if problems := impurities(t, dir); len(problems) > 0 {
		t.Errorf("sorted keys: got %q, want none", problems)
	}
}

// inspector collects what is impure in one package.
type inspector struct {
	fset     *token.FileSet
	info     *types.Info
	ordered  map[ast.Node]bool // arguments of orderedWalks
	problems []string
}

func impurities(t *testing.T, dir string) []string {
	t.Helper()
	in := &inspector{
		fset:    token.NewFileSet(),
		info:    &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}},
		ordered: map[ast.Node]bool{},
	}
	files := parseProduct(t, in.fset, dir)
	conf := types.Config{Importer: importer.ForCompiler(in.fset, "source", nil)}
	if _, err := conf.Check(dir, in.fset, files, in.info); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		ast.Inspect(f, in.inspect)
	}
	return in.problems
}

func (in *inspector) report(n ast.Node, format string, args ...any) {
	in.problems = append(in.problems, in.fset.Position(n.Pos()).String()+": "+fmt.Sprintf(format, args...))
}

func (in *inspector) inspect(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		if path, err := strconv.Unquote(n.Path.Value); err != nil || !slices.Contains(pureImports, path) {
			in.report(n, "imports %s", n.Path.Value)
		}
	case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		in.report(n, "uses concurrency (%T)", n)
	case *ast.SelectorExpr:
		if name := types.ExprString(n); slices.Contains(impure, name) {
			in.report(n, "uses %s", name)
		}
	case *ast.BinaryExpr:
		if isFloat(in.info.TypeOf(n)) {
			in.report(n, "calculates with floating-point numbers")
		}
	case *ast.AssignStmt:
		if n.Tok != token.ASSIGN && n.Tok != token.DEFINE && isFloat(in.info.TypeOf(n.Lhs[0])) {
			in.report(n, "calculates with floating-point numbers")
		}
	case *ast.CallExpr:
		in.inspectCall(n)
	case *ast.RangeStmt:
		if _, isMap := in.info.TypeOf(n.X).Underlying().(*types.Map); isMap {
			in.report(n, "ranges over a map: use slices.Sorted(maps.Keys(m))")
		}
	case *ast.Field:
		if n.Tag != nil {
			in.report(n, "has a struct tag: wire shapes belong to httpapi")
		}
	}
	return true
}

// inspectCall finds the walks of package maps that nobody sorts.
func (in *inspector) inspectCall(n *ast.CallExpr) {
	name := types.ExprString(n.Fun)
	if slices.Contains(orderedWalks, name) {
		in.ordered[n.Args[0]] = true
	}
	walk := name == "maps.Keys" || name == "maps.Values" || name == "maps.All"
	if walk && !in.ordered[n] {
		in.report(n, "walks over a map: use slices.Sorted(maps.Keys(m))")
	}
}

// isFloat reports whether a calculation of type t may be rounded in one way
// here and in another there. Constants and comparisons are exact.
func isFloat(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsUntyped == 0 && basic.Info()&(types.IsFloat|types.IsComplex) != 0
}

func parseProduct(t *testing.T, fset *token.FileSet, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
