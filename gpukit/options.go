package gpukit

import "strings"

// Option is a setting of a device, made by the functions that return one and
// taken by Device.With.
type Option struct {
	set func(*options)
}

// options are all settings; the zero value is the default. It is comparable:
// part of the key under which compiled programs are kept.
type options struct {
	fastMath bool
}

// FastMath allows results that differ in the last bits where that is faster. It
// allows, it does not demand: a device without a faster way gives the same bits.
func FastMath() Option { return Option{func(o *options) { o.fastMath = true }} }

// String lists the settings that are not the default.
func (o options) String() string {
	var s []string
	if o.fastMath {
		s = append(s, "FastMath()")
	}
	return strings.Join(s, ", ")
}
