package store

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestNormalise(t *testing.T) {
	for _, test := range []struct {
		reason, given, want string
		quick               bool
	}{
		{"normal", `{"a":[1,-0.5e+7,"x\n\"\\"],"b":{},"c":[],"d":null,"e":true,"f":false}`, `{"a":[1,-0.5e+7,"x\n\"\\"],"b":{},"c":[],"d":null,"e":true,"f":false}`, true},
		{"digits stay", `{"a":12345678901234567890,"b":1.50}`, `{"a":12345678901234567890,"b":1.50}`, true},
		{"escaped for HTML", `{"a":"\u003c\\u003c\u0026x\u003e","b":"é"}`, `{"a":"<\\u003c&x>","b":"é"}`, true},
		{"white space", `{ "a" : 1 }`, `{"a":1}`, false},
		{"keys in another order", `{"b":1,"a":2}`, `{"a":2,"b":1}`, false},
		{"a key twice", `{"a":1,"a":2}`, `{"a":2}`, false},
		{"an escaped key", `{"\u003c":1}`, `{"<":1}`, false},
		{"another escape", `{"a":"\u00e9\/"}`, `{"a":"é/"}`, false},
		{"a line separator", "{\"a\":\"\u2028\"}", `{"a":"\u2028"}`, false},
		{"no UTF-8", "{\"a\":\"\xff\"}", `{"a":"�"}`, false},
		{"the letters u0000", `{"a":"\\u0000"}`, `{"a":"\\u0000"}`, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got, err := Normalise(json.RawMessage(test.given)); err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
			if _, quick := quickNormal(json.RawMessage(test.given)); quick != test.quick {
				t.Errorf("quick: %t", quick)
			}
		})
	}
	if _, err := Normalise(json.RawMessage(`{"a":"\u0000"}`)); !errors.Is(err, ErrNUL) {
		t.Error(err)
	}
}

// FuzzNormalise compares what is quick with what is sure.
func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{
		`{"a":"\u003c\\u003c\u0026x\u003e","b":"é"}`, `{"a":[1,-0.5e+7,"x\n\"\\"],"b":{},"c":[],"d":null,"e":true}`, `{"a":1,"a":2}`,
		`01`, `-`, `1.`, `"\u2028"`, "\"\x7f\"", `{"":{"":0}}`, `[`, `"\u0000"`, `1 2`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		quick, ok := quickNormal(raw)
		slow, err := slowNormal(raw)
		if ok && (err != nil || quick != slow) {
			t.Errorf("%q: quick %q, slow %q, %v", raw, quick, slow, err)
		}
	})
}
