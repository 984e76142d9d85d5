package rules

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// Limits of expressions.
const (
	// maxCost bounds the cost of the expressions of one rule for one object, in CEL's units. It suffices for a list of two
	// thousand items, which takes 20 ms at worst.
	maxCost = 20_000
	// maxTime bounds an evaluation whose cost does not reflect its time.
	maxTime = 5 * time.Second
	// maxExpression bounds the length of an expression, in characters.
	maxExpression = 4096
	// maxNesting bounds the nesting of all, exists, map and filter.
	maxNesting = 3
	// interruptEvery is the number of steps of a comprehension between two checks of the time.
	interruptEvery = 100
)

// errTooExpensive ends an evaluation that exceeds maxCost or maxTime.
var errTooExpensive = errors.New("it costs too much")

// environment compiles all expressions. It is created on first use, because that takes a millisecond.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	var env *cel.Env
	options := []cel.EnvOption{
		ext.NativeTypes(reflect.TypeFor[Condition](), ext.ParseStructTags(true)),
		cel.Variable("object", objectType),
		cel.Variable("now", cel.TimestampType),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(64),
		cel.ExpressionNodeLimit(maxExpression),
		cel.RegexProgramSizeLimit(1000),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(),
			cel.ValidateComprehensionNestingLimit(maxNesting), literalArguments{},
		),
	}
	var err error
	env, err = cel.NewEnv(append(options, functions(func() types.Adapter { return env.CELTypeAdapter() })...)...)
	return env, err
})

// literalArguments checks arguments that have to be literals. A regular expression from an object could take too long to
// compile, and a wrong literal path is an error at load.
type literalArguments struct{}

func (literalArguments) Name() string { return "threeport.literals" }

func (literalArguments) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	calls := ast.MatchDescendants(ast.NavigateAST(a), ast.KindMatcher(ast.CallKind))
	for _, node := range calls {
		call := node.AsCall()
		args := call.Args()
		if call.IsMemberFunction() {
			args = append([]ast.Expr{call.Target()}, args...)
		}
		if len(args) < 2 {
			continue
		}
		second := args[1]
		literal := second.Kind() == ast.LiteralKind
		switch call.FunctionName() {
		case overloads.Matches:
			if !literal {
				issues.ReportErrorAtID(second.ID(), "the pattern of matches has to be a literal string")
			}
		case "text", "flag", "time", "number", "list":
			if !literal {
				continue
			}
			if _, err := pathOf(second.AsLiteral()); err != nil {
				issues.ReportErrorAtID(second.ID(), "%s", err.Error())
			}
		}
	}
}

// expression is a compiled expression.
type expression struct {
	program cel.Program
}

// compile compiles an expression. Its type has to be the wanted one, or dynamic.
func compile(text string, want *cel.Type) (*expression, []issue) {
	env, err := environment()
	if err != nil {
		return nil, []issue{{text: err.Error()}}
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		var out []issue
		for _, e := range issues.Errors() {
			message, _, _ := strings.Cut(e.Message, "\n")
			out = append(out, issue{line: e.Location.Line(), column: e.Location.Column() + 1, text: message})
		}
		return nil, out
	}
	if got := checked.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, []issue{{line: 1, column: 1, text: fmt.Sprintf("the expression gives %s, and has to give %s", cel.FormatCELType(got), cel.FormatCELType(want))}}
	}
	if cost, err := env.EstimateCost(checked, unknownSizes{}); err == nil && cost.Min > maxCost {
		return nil, []issue{{line: 1, column: 1, text: fmt.Sprintf("the expression costs %d at least, and may cost %d", cost.Min, maxCost)}}
	}
	program, err := env.Program(checked,
		cel.CostTracking(functionCosts{}),
		cel.CostLimit(maxCost),
		cel.InterruptCheckFrequency(interruptEvery),
		cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, []issue{{line: 1, column: 1, text: err.Error()}}
	}
	return &expression{program}, nil
}

// issue is an error in an expression, at a line and a column from 1; 0 for the whole expression.
type issue struct {
	line, column int
	text         string
}

// unknownSizes gives the estimator no sizes, so that only the minimum of an estimate counts.
type unknownSizes struct{}

func (unknownSizes) EstimateSize(checker.AstNode) *checker.SizeEstimate { return nil }

func (unknownSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// evaluation evaluates expressions for one object within one cost limit.
type evaluation struct {
	vars map[string]any
	cost uint64
}

func newEvaluation(object map[string]any, now time.Time) *evaluation {
	return &evaluation{vars: map[string]any{"object": object, "now": types.Timestamp{Time: now.UTC()}}}
}

// value evaluates an expression. It returns errTooExpensive if a limit is exceeded.
func (e *evaluation) value(x *expression) (ref.Val, error) {
	if e.cost > maxCost {
		return nil, errTooExpensive
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	v, details, err := x.program.ContextEval(ctx, e.vars)
	if details != nil {
		if cost := details.ActualCost(); cost != nil {
			e.cost += *cost
		}
	}
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled), err != nil && ctx.Err() != nil, err == nil && e.cost > maxCost:
		return nil, errTooExpensive
	case err != nil:
		return nil, err
	case types.IsUnknownOrError(v):
		return nil, fmt.Errorf("%v", v)
	}
	return v, nil
}

func (e *evaluation) bool(x *expression) (bool, error) {
	v, err := e.value(x)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it gives %s, not true or false", v.Type().TypeName())
	}
	return bool(b), nil
}

func (e *evaluation) text(x *expression) (string, error) {
	v, err := e.value(x)
	if err != nil {
		return "", err
	}
	s, ok := v.(types.String)
	if !ok {
		return "", fmt.Errorf("it gives %s, not a string", v.Type().TypeName())
	}
	return string(s), nil
}

// time returns the time that an expression gives; zero if that is unknown.
func (e *evaluation) time(x *expression) (time.Time, error) {
	v, err := e.value(x)
	if err != nil {
		return time.Time{}, err
	}
	t, ok := v.(types.Timestamp)
	if !ok {
		return time.Time{}, fmt.Errorf("it gives %s, not a time", v.Type().TypeName())
	}
	if !t.After(epoch) {
		return time.Time{}, nil
	}
	return t.UTC(), nil
}
