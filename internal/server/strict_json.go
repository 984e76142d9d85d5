package server

import (
	"encoding/json"
	"errors"
	"fmt"

	strictjson "sigs.k8s.io/json"
)

// unmarshalBody decodes the body of an operation. huma decodes twice: into maps, which it validates against the schema, and
// into the operation's type. The schema does not see duplicate names, and huma accepts names in any case. As in report sets,
// both are refused.
func unmarshalBody(body []byte, target any) error {
	if _, toValidate := target.(*any); toValidate {
		return json.Unmarshal(body, target)
	}
	strict, err := strictjson.UnmarshalStrict(body, target)
	if err != nil {
		return err
	}
	for _, err := range strict {
		if field, ok := errors.AsType[strictjson.FieldError](err); ok {
			return fmt.Errorf("%s: unknown or duplicate field", shortened(field.FieldPath()))
		}
	}
	return errors.Join(strict...)
}
