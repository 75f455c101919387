package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// others are the operators that take an operator's place.
var others = map[token.Token][]token.Token{
	token.LSS:  {token.LEQ, token.GEQ},
	token.LEQ:  {token.LSS, token.GTR},
	token.GTR:  {token.GEQ, token.LEQ},
	token.GEQ:  {token.GTR, token.LSS},
	token.EQL:  {token.NEQ},
	token.NEQ:  {token.EQL},
	token.LAND: {token.LOR},
	token.LOR:  {token.LAND},
	token.ADD:  {token.SUB},
	token.SUB:  {token.ADD},
	token.MUL:  {token.QUO},
	token.QUO:  {token.MUL},
	token.REM:  {token.MUL},
}

// finder finds the mutants of a file.
type finder struct {
	*pkg
	source   *source
	function string
	found    []*mutant
}

func (f *finder) find() {
	for _, d := range f.source.syntax.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		f.function = function.Name.Name
		if function.Recv != nil {
			receiver := f.text(function.Recv.List[0].Type)
			f.function = strings.TrimLeft(receiver, "*") + "." + f.function
		}
		ast.Inspect(function.Body, f.visit)
	}
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.operator(n)
	case *ast.UnaryExpr:
		f.negation(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	}
	return true
}

// operator finds the mutants of an expression with two operands. What a
// constant is made of has no other value at run time.
func (f *finder) operator(e *ast.BinaryExpr) {
	t := f.info.Types[e]
	if basic, ok := t.Type.Underlying().(*types.Basic); t.Value != nil || !ok || basic.Info()&types.IsString != 0 {
		return
	}
	result := types.TypeString(types.Default(t.Type), func(other *types.Package) string {
		if other.Name() == f.name {
			return ""
		}
		return other.Name()
	})
	if strings.Contains(result, ".") && !strings.Contains(string(f.source.text), `"`+strings.Split(result, ".")[0]+`"`) {
		return // the file has no name for the type
	}
	for _, op := range others[e.Op] {
		f.add(e, f.text(e.X)+" "+op.String()+" "+f.text(e.Y), func(text func(int, int) string, number int) string {
			x, y := text(f.span(e.X)), text(f.span(e.Y))
			return fmt.Sprintf("(func() %s { if mutantNumber == %d { return (%s) %s (%s) }; return %s }())",
				result, number, x, op, y, text(f.span(e)))
		})
	}
}

// negation finds "not" and "minus", which a mutant leaves out.
func (f *finder) negation(e *ast.UnaryExpr) {
	if f.info.Types[e].Value != nil || e.Op != token.NOT {
		return
	}
	f.add(e, f.text(e.X), func(text func(int, int) string, number int) string {
		return fmt.Sprintf("((mutantNumber == %d) != !(%s))", number, text(f.span(e.X)))
	})
}

// statements finds the statements that a mutant leaves out: calls, assignments
// and counting.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || f.text(call.Fun) == "panic" {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.text(s.Lhs[0]) == "_" {
				continue
			}
		case *ast.IncDecStmt:
		default:
			continue
		}
		f.add(s, "nothing", func(text func(int, int) string, number int) string {
			return fmt.Sprintf("if mutantNumber != %d { %s }", number, text(f.span(s)))
		})
	}
}

func (f *finder) add(n ast.Node, is string, write func(text func(int, int) string, number int) string) {
	start, end := f.span(n)
	f.found = append(f.found, &mutant{
		file: f.source, line: f.fset.Position(n.Pos()).Line, function: f.function, start: start, end: end,
		was: f.text(n), is: oneLine(is), write: write,
	})
}

func (f *finder) span(n ast.Node) (start, end int) {
	return f.fset.Position(n.Pos()).Offset, f.fset.Position(n.End()).Offset
}

// text is the source of a node in one line.
func (f *finder) text(n ast.Node) string {
	start, end := f.span(n)
	return oneLine(string(f.source.text[start:end]))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
