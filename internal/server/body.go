package server

import (
	"encoding/json"
	"errors"
	"fmt"

	strictjson "sigs.k8s.io/json"
)

// readBody decodes the body of an operation. huma does so twice: into maps, which it holds to the schema, and then into the
// operation's own type. The schema does not see that a name comes twice, and huma takes names in any case: as in report sets,
// both are refused.
func readBody(body []byte, target any) error {
	if _, toValidate := target.(*any); toValidate {
		return json.Unmarshal(body, target)
	}
	strict, err := strictjson.UnmarshalStrict(body, target)
	if err != nil {
		return err
	}
	for _, err := range strict {
		if field, ok := errors.AsType[strictjson.FieldError](err); ok {
			return fmt.Errorf("%s is no field of this object, or is there twice", shortened(field.FieldPath()))
		}
	}
	return errors.Join(strict...)
}
