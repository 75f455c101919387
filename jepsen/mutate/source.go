package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// source is a file of the package.
type source struct {
	name, path string
	text       []byte
	syntax     *ast.File
}

// pkg is a package and its mutants, in the order of files and places.
type pkg struct {
	dir     string
	name    string
	fset    *token.FileSet
	sources []*source
	info    types.Info
	mutants []*mutant
}

// load reads a package that imports nothing but the standard library and finds
// its mutants.
func load(dir string) (*pkg, error) {
	p := &pkg{dir: dir, fset: token.NewFileSet(), info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read file: %w", err)
		}
		syntax, err := parser.ParseFile(p.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse file: %w", err)
		}
		p.name = syntax.Name.Name
		p.sources = append(p.sources, &source{filepath.Base(path), path, text, syntax})
		files = append(files, syntax)
	}
	config := types.Config{Importer: importer.ForCompiler(p.fset, "source", nil)}
	if _, err := config.Check(p.name, p.fset, files, &p.info); err != nil {
		return nil, fmt.Errorf("check types: %w", err)
	}
	for _, s := range p.sources {
		f := finder{pkg: p, source: s}
		f.find()
		p.mutants = append(p.mutants, f.found...)
	}
	return p, nil
}

// build makes a test binary with the mutants; number i+1 is drawn[i].
func (p *pkg) build(work string, drawn []*mutant) (string, error) {
	overlay := map[string]string{}
	add := func(path, text string) error {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("find file: %w", err)
		}
		overlay[absolute] = filepath.Join(work, filepath.Base(path))
		if err := os.WriteFile(overlay[absolute], []byte(text), 0o600); err != nil {
			return fmt.Errorf("write mutants: %w", err)
		}
		return nil
	}
	for _, s := range p.sources {
		if err := add(s.path, s.withMutants(drawn)); err != nil {
			return "", err
		}
	}
	toggle := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\n"+
		"var mutantNumber, _ = strconv.Atoi(os.Getenv(%q))\n", p.name, switchName)
	if err := add(filepath.Join(p.dir, "mutant_number.go"), toggle); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	listPath, binary := filepath.Join(work, "overlay.json"), filepath.Join(work, "mutants.test")
	if err := os.WriteFile(listPath, list, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", listPath, "-o", binary, "./"+filepath.Clean(p.dir)) //nolint:gosec // its own files
	if output, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build mutants: %w\n%s", err, output)
	}
	return binary, nil
}

// withMutants returns the text of the file with the mutants that are in it.
func (s *source) withMutants(drawn []*mutant) string {
	var mine []*mutant
	number := map[*mutant]int{}
	for i, m := range drawn {
		if m.file == s {
			mine, number[m] = append(mine, m), i+1
		}
	}
	return s.rewrite(0, len(s.text), mine, number)
}

// rewrite returns the text from start to end. The mutants, all inside, come in
// the order of their starts, outer ones first.
func (s *source) rewrite(start, end int, inside []*mutant, number map[*mutant]int) string {
	var b strings.Builder
	for len(inside) > 0 {
		m := inside[0]
		after := 1 + slices.IndexFunc(append(inside[1:len(inside):len(inside)], &mutant{start: end}), func(other *mutant) bool { return other.start >= m.end })
		nested := inside[1:after]
		b.Write(s.text[start:m.start])
		b.WriteString(m.write(func(from, to int) string {
			within := slices.DeleteFunc(slices.Clone(nested), func(n *mutant) bool { return n.start < from || n.end > to })
			return s.rewrite(from, to, within, number)
		}, number[m]))
		start, inside = m.end, inside[after:]
	}
	b.Write(s.text[start:end])
	return b.String()
}
