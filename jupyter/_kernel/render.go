//go:build go1.21

package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"
	"reflect"
	"sort"
	"strings"

	basereflect "github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/xreflect"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot/vg"

	"gpunotes/jupyter/cell"
)

// plotWriter is what gonum/plot's *plot.Plot offers.
type plotWriter interface {
	WriterTo(w, h vg.Length, format string) (io.WriterTo, error)
}

// Size of a plot that is the last value of a cell.
const (
	plotWidth  = 6 * vg.Inch
	plotHeight = 4 * vg.Inch
)

// maxText bounds the text of a value: a browser chokes on megabytes.
const maxText = 20000

// The stand-ins through which types declared in cells satisfy two of
// gophernotes' interfaces; its own have a wrong signature or are missing.
type proxyJSON struct {
	Object interface{}
	JSON_  func(interface{}) map[string]interface{}
}

func (p *proxyJSON) JSON() map[string]interface{} { return p.JSON_(p.Object) }

type proxyJavaScript struct {
	Object      interface{}
	JavaScript_ func(interface{}) string
}

func (p *proxyJavaScript) JavaScript() string { return p.JavaScript_(p.Object) }

// proxyText is the same for String methods.
type proxyText struct {
	Object  interface{}
	String_ func(interface{}) string
}

func (p *proxyText) String() string { return p.String_(p.Object) }

// initDisplay makes the package display and the function Display available.
func (k *kernel) initDisplay() {
	display.Proxies["JSONer"] = reflect.TypeOf((*proxyJSON)(nil)).Elem()
	display.Proxies["JavaScripter"] = reflect.TypeOf((*proxyJavaScript)(nil)).Elem()
	display.Types["Stringer"] = reflect.TypeOf((*fmt.Stringer)(nil)).Elem()
	display.Proxies["Stringer"] = reflect.TypeOf((*proxyText)(nil)).Elem()
	autoRenderers["Image"] = func(d Data, i interface{}) Data {
		if img, ok := i.(image.Image); ok {
			x := Image(img)
			d.Data = merge(d.Data, x.Data)
			d.Metadata = merge(d.Metadata, x.Metadata)
		}
		return d
	}
	ir := k.session.Interp()
	k.gn = Kernel{ir, importPackage(ir, "display", "display"), nil}
	ir.DeclVar("Display", nil, k.show)
	k.gn.initRenderers()
	// Not a form of display: else every value with a String method would count as one.
	k.stringer = k.gn.render["Stringer"]
	delete(k.gn.render, "Stringer")
}

// show displays data below the current cell; in cells it is called Display.
func (k *kernel) show(data Data) error {
	data, err := tidy(data)
	if err != nil {
		return err
	}
	r := k.receipt()
	if r == nil {
		return errors.New("cannot display: no notebook is connected")
	}
	k.flush()
	return r.PublishDisplayData(data)
}

// update replaces the HTML shown under a display id by the current cell, or
// shows it first. It may be called from any goroutine.
func (k *kernel) update(id, html string) error {
	k.mu.Lock()
	r, first := k.current, !k.shown[id]
	k.shown[id] = true
	k.mu.Unlock()
	if r == nil {
		return errors.New("cannot display: no notebook is connected")
	}
	kind := "update_display_data"
	if first {
		kind = "display_data"
		k.flush() // what was printed before it stands above it
	}
	return r.Publish(kind, map[string]interface{}{
		"data":      map[string]string{MIMETypeHTML: html, MIMETypeText: "(HTML)"},
		"metadata":  map[string]string{},
		"transient": map[string]string{"display_id": id},
	})
}

// render turns the results of a cell into what is shown below it. Methods of
// the values may panic; the caller recovers.
func (k *kernel) render(res cell.Result) (Data, *cell.Error) {
	if len(res.Values) == 0 {
		return Data{}, nil
	}
	vals, types := res.Values, append([]xreflect.Type(nil), res.Types...)
	one := -1 // the only value that is not nil
	for i, v := range vals {
		if v == nil {
			continue
		}
		if t := types[i]; t == nil || t.Kind() == reflect.Interface {
			// What counts is the value, not the variable it came from.
			types[i] = k.gn.ir.Comp.Universe.TypeOf(v)
		}
		if one >= 0 {
			one = -2
		} else if one == -1 {
			one = i
		}
	}
	if one < 0 {
		return Data{Data: MIMEMap{MIMETypeText: k.text(vals, types)}}, nil
	}
	v, t := vals[one], types[one]
	plot, isPlot := v.(plotWriter)
	renders := isPlot || k.gn.canAutoRender(v, t)
	if renders {
		if e, ok := v.(interface{ Err() error }); ok {
			if err := e.Err(); err != nil {
				return Data{}, cell.Caught(err)
			}
		}
	}
	var data Data
	switch {
	case isPlot:
		png, err := drawPlot(plot)
		if err != nil {
			return Data{}, cell.Caught(fmt.Errorf("the plot cannot be drawn: %w", err))
		}
		data.Data = MIMEMap{MIMETypePNG: png, MIMETypeText: fmt.Sprintf("%T", v)}
	case renders:
		data = k.autoRender(v, t)
	default:
		data.Data = MIMEMap{MIMETypeText: k.text(vals, types)}
	}
	if _, ok := data.Data[MIMETypeText]; !ok {
		data.Data = ensure(data.Data)
		if img, ok := v.(image.Image); ok {
			data.Data[MIMETypeText] = fmt.Sprintf("%T %dx%d", v, img.Bounds().Dx(), img.Bounds().Dy())
		} else {
			data.Data[MIMETypeText] = k.text(vals, types)
		}
	}
	data, err := tidy(data)
	if err != nil {
		return Data{}, cell.Caught(err)
	}
	return data, nil
}

// autoRender asks a value for every form it can show itself in. Values with
// methods declared in a cell are converted by the interpreter.
func (k *kernel) autoRender(v interface{}, t xreflect.Type) Data {
	var data Data
	if d, ok := v.(Data); ok {
		data = d
	}
	names := make([]string, 0, len(autoRenderers))
	for name := range autoRenderers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		want := k.gn.render[name]
		if want == nil {
			continue
		}
		x := v
		if !reflect.TypeOf(v).Implements(want.ReflectType()) {
			if !t.Implements(want) {
				continue
			}
			if x = k.convert(v, t, want); x == nil {
				continue
			}
		}
		data = autoRenderers[name](data, x)
	}
	return data
}

func (k *kernel) convert(v interface{}, t, want xreflect.Type) interface{} {
	conv := k.gn.ir.Comp.Converter(t, want)
	if conv == nil {
		return v
	}
	return basereflect.ValueInterface(conv(xreflect.ValueOf(v)))
}

// text prints values as fmt does, with the String methods of types declared in
// cells, which fmt cannot see.
func (k *kernel) text(vals []interface{}, types []xreflect.Type) string {
	args := make([]interface{}, len(vals))
	for i, v := range vals {
		args[i] = v
		if v == nil || types[i] == nil || k.stringer == nil {
			continue
		}
		if r := reflect.ValueOf(v); r.Kind() == reflect.Ptr && r.IsNil() {
			continue
		}
		switch x := v.(type) {
		case fmt.Formatter, error:
			continue
		case mat.Matrix:
			args[i] = matrixText(x)
			continue
		case fmt.Stringer:
			// Called here and not by fmt, which would hide its panic.
			args[i] = v.(fmt.Stringer).String()
			continue
		}
		if list := reflect.ValueOf(v); isRecords(list.Type()) {
			args[i] = recordsText(list)
			continue
		}
		if types[i].Implements(k.stringer) {
			if x, ok := k.convert(v, types[i], k.stringer).(fmt.Stringer); ok {
				args[i] = x.String()
			}
		}
	}
	// Not Sprint, which puts no blank between strings.
	s := strings.TrimSuffix(fmt.Sprintln(args...), "\n")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf(" ... (%d more bytes; use fmt.Println to see all)", len(s)-maxText)
	}
	return s
}

// maxCorner is how many rows and columns of a big matrix are shown on each side.
const maxCorner = 5

// matrixText prints a matrix of gonum as a table.
func matrixText(m mat.Matrix) string {
	rows, cols := m.Dims()
	if rows == 0 || cols == 0 {
		return fmt.Sprintf("%T %dx%d", m, rows, cols)
	}
	opts := []mat.FormatOption{mat.Squeeze()}
	if rows > 2*maxCorner+1 || cols > 2*maxCorner+1 {
		opts = append(opts, mat.Excerpt(maxCorner))
	}
	return fmt.Sprint(mat.Formatted(m, opts...))
}

var stringerType = reflect.TypeOf((*fmt.Stringer)(nil)).Elem()

// isRecords reports whether t is a list of structs that say themselves how they look.
func isRecords(t reflect.Type) bool {
	if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return false
	}
	e := t.Elem()
	return e.Implements(stringerType) && (e.Kind() == reflect.Struct || e.Kind() == reflect.Ptr && e.Elem().Kind() == reflect.Struct)
}

// recordsText prints such a list one a line.
func recordsText(list reflect.Value) string {
	var b strings.Builder
	for i := 0; i < list.Len() && b.Len() <= maxText; i++ {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprint(&b, list.Index(i).Interface())
	}
	return b.String()
}

func drawPlot(p plotWriter) ([]byte, error) {
	w, err := p.WriterTo(plotWidth, plotHeight, "png")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tidy makes data fit for sending: errors that gophernotes put in place of
// data come out, text is text, and there is always a plain form.
func tidy(data Data) (Data, error) {
	if msg, ok := data.Data["evalue"]; ok && data.Data["status"] == "error" {
		return Data{}, fmt.Errorf("%v", msg)
	}
	out := MIMEMap{}
	binary := ""
	for mime, v := range data.Data {
		b, isBytes := v.([]byte)
		switch {
		case isBytes && isText(mime):
			out[mime] = string(b)
		case isBytes:
			out[mime] = b
			binary = fmt.Sprintf("(%s, %d bytes)", mime, len(b))
		default:
			out[mime] = v
		}
	}
	if s, ok := out[MIMETypeText].(string); !ok || s == "" || binary != "" && strings.HasPrefix(s, "[") {
		// gophernotes prints the bytes of an image as numbers.
		if binary == "" {
			binary = "(no text form)"
		}
		out[MIMETypeText] = binary
	}
	data.Data = out
	return data, nil
}

func isText(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == MIMETypeSVG || mime == MIMETypeJavaScript
}
