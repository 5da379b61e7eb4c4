package judge

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"skep/problems/value"
)

// What JSON cannot say is said by an object with one key that starts with $:
//
//	{"$int": "-12"}        an integer of up to 100,000 digits
//	{"$f": "nan"}          nan, inf or -inf
//	{"$c": [re, im]}       a complex number; re and im are floats as above
//	{"$frac": ["1", "3"]}  a fraction with a positive denominator
//	{"$tuple": […]}, {"$set": […]}
//	{"$nd": k}             the k-th array of the frame, each used once
//
// A JSON number written with neither point nor exponent is an integer, any other a float; an object without such a key is a
// dict with text keys.
const (
	maxDepth  = 64
	maxDigits = 100_000
)

// DecodeJSON reads one JSON value, strictly, with the tags of frames except $nd: what `skep verify` takes for what an
// entry function returned.
func DecodeJSON(text []byte) (value.Value, error) {
	tree, err := parseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("judge: read JSON: %w", err)
	}
	v, err := (&tagDecoder{}).value(tree, 0)
	if err != nil {
		return nil, fmt.Errorf("judge: read JSON: %w", err)
	}
	return v, nil
}

// tagDecoder turns parsed JSON into values.
type tagDecoder struct {
	arrays []value.Array
	used   []bool // each array at most once
}

func (d *tagDecoder) value(v any, depth int) (value.Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value is nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return value.Nil{}, nil
	case bool:
		return value.Bool(v), nil
	case number:
		if !strings.ContainsAny(string(v), ".eE") {
			return bigInt(string(v))
		}
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is beyond float64", clip(string(v), 40))
		}
		return value.Float(f), nil
	case string:
		return value.String(v), nil
	case []any:
		list, err := d.items(v, depth)
		return value.List(list), err
	default:
		return d.object(v.(object), depth)
	}
}

func (d *tagDecoder) items(list []any, depth int) ([]value.Value, error) {
	values := make([]value.Value, len(list))
	for i, item := range list {
		var err error
		if values[i], err = d.value(item, depth+1); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (d *tagDecoder) object(o object, depth int) (value.Value, error) {
	for key, v := range o {
		if strings.HasPrefix(key, "$") {
			if len(o) != 1 {
				return nil, fmt.Errorf("the tag %q is not alone in its object", clip(key, 20))
			}
			return d.tag(key, v, depth)
		}
	}
	dict := make(value.Dict, len(o))
	for key, v := range o {
		var err error
		if dict[key], err = d.value(v, depth+1); err != nil {
			return nil, err
		}
	}
	return dict, nil
}

func (d *tagDecoder) tag(key string, v any, depth int) (value.Value, error) {
	switch key {
	case "$int":
		return bigInt(v)
	case "$f":
		return special(v)
	case "$c":
		return d.complex(v)
	case "$frac":
		return fraction(v)
	case "$nd":
		return d.array(v)
	case "$tuple", "$set":
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("the tag %s holds no list", key)
		}
		items, err := d.items(list, depth)
		if key == "$set" {
			return value.Set(items), err
		}
		return value.Tuple(items), err
	default:
		return nil, fmt.Errorf("unknown tag %q", clip(key, 20))
	}
}

func bigInt(v any) (*big.Int, error) {
	text, ok := v.(string)
	digits := strings.TrimPrefix(text, "-")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil, errors.New("an integer has no decimal digits")
	}
	if len(digits) > maxDigits {
		return nil, fmt.Errorf("an integer of %d digits, at most %d are allowed", len(digits), maxDigits)
	}
	i, _ := new(big.Int).SetString(text, 10)
	return i, nil
}

func special(v any) (value.Value, error) {
	switch v {
	case "nan":
		return value.Float(math.NaN()), nil
	case "inf":
		return value.Float(math.Inf(1)), nil
	case "-inf":
		return value.Float(math.Inf(-1)), nil
	}
	return nil, errors.New("the tag $f holds none of nan, inf and -inf")
}

func (d *tagDecoder) complex(v any) (value.Value, error) {
	var parts [2]float64
	list, _ := v.([]any)
	if len(list) != len(parts) {
		return nil, errors.New("a complex number has not two parts")
	}
	for i, item := range list {
		part, err := d.value(item, maxDepth)
		if err != nil {
			return nil, err
		}
		f, ok := part.(value.Float)
		if !ok {
			return nil, errors.New("a part of a complex number is no float")
		}
		parts[i] = float64(f)
	}
	return value.Complex(complex(parts[0], parts[1])), nil
}

func fraction(v any) (value.Value, error) {
	list, _ := v.([]any)
	if len(list) != 2 {
		return nil, errors.New("a fraction has not two parts")
	}
	above, err := bigInt(list[0])
	if err != nil {
		return nil, err
	}
	below, err := bigInt(list[1])
	if err != nil {
		return nil, err
	}
	if below.Sign() <= 0 {
		return nil, errors.New("a fraction's denominator is not positive")
	}
	return new(big.Rat).SetFrac(above, below), nil
}

func (d *tagDecoder) array(v any) (value.Value, error) {
	k, err := smallInt(v, len(d.arrays)-1)
	if err != nil || d.used[k] {
		return nil, fmt.Errorf("the tag $nd names none of the %d arrays, or one a second time", len(d.arrays))
	}
	d.used[k] = true
	return &d.arrays[k], nil
}

// smallInt reads a JSON number as an integer from 0 to most.
func smallInt(v any, most int) (int, error) {
	text, _ := v.(number)
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil || int(n) > most {
		return 0, fmt.Errorf("%q is no integer from 0 to %d", clip(string(text), 20), most)
	}
	return int(n), nil
}
