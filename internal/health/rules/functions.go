package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxJoined bounds the result of join, in bytes. CEL charges the cost of a function only after it has returned.
const maxJoined = 64 << 10

var (
	objectType    = cel.MapType(cel.StringType, cel.DynType)
	conditionType = cel.ObjectType("rules.Condition")
)

// getter reads the value at a path of an object.
type getter func(object map[string]any, path []string) (any, error)

// functions returns the functions of expressions beside the standard library. They return a zero value for an absent
// field and an error for a malformed one.
func functions(adapter func() types.Adapter) []cel.EnvOption {
	value := func(v any, err error) ref.Val {
		if err != nil {
			return types.WrapErr(err)
		}
		return adapter().NativeToValue(v)
	}
	return []cel.EnvOption{
		onCondition("condition", conditionType, value, func(_ map[string]any, c Condition) (any, error) { return c, nil }),
		onCondition("isTrue", cel.BoolType, value, is("True")),
		onCondition("isFalse", cel.BoolType, value, is("False")),
		onCondition("isUnknown", cel.BoolType, value, is("Unknown")),
		onCondition("since", cel.TimestampType, value, since),
		atPath("text", cel.StringType, value, func(o map[string]any, p []string) (any, error) { return findText(o, p) }),
		atPath("flag", cel.BoolType, value, func(o map[string]any, p []string) (any, error) { return findFlag(o, p) }),
		atPath("time", cel.TimestampType, value, func(o map[string]any, p []string) (any, error) { return findTime(o, p) }),
		atPath("number", cel.IntType, value, func(o map[string]any, p []string) (any, error) {
			n, _, err := findNumber(o, p)
			return n, err
		}),
		atPath("list", cel.ListType(cel.DynType), value, func(o map[string]any, p []string) (any, error) {
			list, err := findList(o, p)
			if list == nil {
				list = []any{}
			}
			return list, err
		}),
		cel.Function("number", cel.Overload("number_object_path_default",
			[]*cel.Type{objectType, cel.StringType, cel.IntType}, cel.IntType,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val { return numberOr(args, value) }))),
		cel.Function("behind", cel.Overload("behind_object", []*cel.Type{objectType}, cel.BoolType,
			cel.UnaryBinding(func(o ref.Val) ref.Val {
				object, err := native(o)
				if err != nil {
					return types.WrapErr(err)
				}
				return value(isBehind(object))
			}))),
		cel.Function("created", cel.Overload("created_object", []*cel.Type{objectType}, cel.TimestampType,
			cel.UnaryBinding(func(o ref.Val) ref.Val {
				object, err := native(o)
				if err != nil {
					return types.WrapErr(err)
				}
				return value(findTime(object, []string{"metadata", "creationTimestamp"}))
			}))),
		cel.Function("join", cel.Overload("join_list_string",
			[]*cel.Type{cel.ListType(cel.StringType), cel.StringType}, cel.StringType, cel.BinaryBinding(join))),
	}
}

// is returns a function that reports whether a condition has a status and is about the current generation.
func is(status string) func(map[string]any, Condition) (any, error) {
	return func(_ map[string]any, c Condition) (any, error) { return c.Status == status && !c.Stale, nil }
}

// since returns the last transition of a condition, or the creation time of the object if that is unknown.
func since(object map[string]any, c Condition) (any, error) {
	if !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime, nil
	}
	return findTime(object, []string{"metadata", "creationTimestamp"})
}

func onCondition(
	name string, result *cel.Type, value func(any, error) ref.Val, read func(map[string]any, Condition) (any, error),
) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_object_string", []*cel.Type{objectType, cel.StringType}, result,
		cel.BinaryBinding(func(o, t ref.Val) ref.Val {
			object, err := native(o)
			if err != nil {
				return types.WrapErr(err)
			}
			kind, ok := t.Value().(string)
			if !ok {
				return types.MaybeNoSuchOverloadErr(t)
			}
			c, err := findCondition(object, kind)
			if err != nil {
				return types.WrapErr(err)
			}
			return value(read(object, c))
		})))
}

// atPath declares a function of an object and a path. A path is a string with dots, or a list of names.
func atPath(name string, result *cel.Type, value func(any, error) ref.Val, get getter) cel.EnvOption {
	call := func(o, p ref.Val) ref.Val {
		object, err := native(o)
		if err != nil {
			return types.WrapErr(err)
		}
		path, err := pathOf(p)
		if err != nil {
			return types.WrapErr(err)
		}
		return value(get(object, path))
	}
	return cel.Function(name,
		cel.Overload(name+"_object_path", []*cel.Type{objectType, cel.StringType}, result, cel.BinaryBinding(call)),
		cel.Overload(name+"_object_names", []*cel.Type{objectType, cel.ListType(cel.StringType)}, result, cel.BinaryBinding(call)))
}

func numberOr(args []ref.Val, value func(any, error) ref.Val) ref.Val {
	object, err := native(args[0])
	if err != nil {
		return types.WrapErr(err)
	}
	path, err := pathOf(args[1])
	if err != nil {
		return types.WrapErr(err)
	}
	n, there, err := findNumber(object, path)
	if err == nil && !there {
		return args[2]
	}
	return value(n, err)
}

// native returns an object that an expression passes to a function.
func native(v ref.Val) (map[string]any, error) {
	if types.IsUnknownOrError(v) {
		return nil, fmt.Errorf("%v", v)
	}
	switch object := v.Value().(type) {
	case map[string]any:
		return object, nil
	default:
		return nil, errors.New("the argument is neither the object nor an object in it")
	}
}

func pathOf(v ref.Val) ([]string, error) {
	switch p := v.(type) {
	case types.String:
		if slices.Contains(strings.Split(string(p), "."), "") {
			return nil, fmt.Errorf("%q is not a path such as status.phase", string(p))
		}
		return strings.Split(string(p), "."), nil
	case traits.Lister:
		var path []string
		for it := p.Iterator(); it.HasNext() == types.True; {
			name, ok := it.Next().(types.String)
			if !ok {
				return nil, errors.New("a path is a list of strings")
			}
			path = append(path, string(name))
		}
		return path, nil
	}
	return nil, errors.New("a path is a string such as 'status.phase', or a list of strings")
}

func join(list, separator ref.Val) ref.Val {
	l, ok := list.(traits.Lister)
	sep, isText := separator.(types.String)
	if !ok || !isText {
		return types.MaybeNoSuchOverloadErr(list)
	}
	var b strings.Builder
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join: the list has an item that is not a string")
		}
		if b.Len() > 0 {
			b.WriteString(string(sep))
		}
		if b.WriteString(string(item)); b.Len() > maxJoined {
			return types.NewErr("join: the text is longer than %d bytes", maxJoined)
		}
	}
	return types.String(b.String())
}

// functionCosts charges the functions of this package for the values that they read. Standard functions have the costs of cel-go.
type functionCosts struct{}

// CallCost returns the cost of a call; nil for a standard function.
func (functionCosts) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var cost uint64 = 2
	switch function {
	case "condition", "isTrue", "isFalse", "isUnknown", "since":
		object, err := native(args[0])
		if err != nil {
			break
		}
		list, err := findList(object, []string{"status", "conditions"})
		if err == nil {
			cost += uint64(len(list))
		}
	case "join":
		if l, ok := args[0].(traits.Lister); ok {
			if n, ok := l.Size().(types.Int); ok && n > 0 {
				cost += 10 * uint64(n)
			}
		}
	case "text", "flag", "time", "number", "list", "created", "behind":
	default:
		return nil
	}
	return &cost
}

// epoch is the earliest known time. Times before it mean that the time is unknown.
var epoch = time.Unix(0, 0)
