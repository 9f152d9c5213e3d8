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

	"github.com/cosmos72/gomacro/base"
	basereflect "github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/xreflect"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
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
	for name, f := range map[string]interface{}{
		"Clear":    k.clear,
		"Show":     func(id string, data Data) error { return k.showAs("display_data", id, data) },
		"Update":   func(id string, data Data) error { return k.showAs("update_display_data", id, data) },
		"Input":    func(prompt string) (string, error) { return k.ask(prompt, false) },
		"Password": func(prompt string) (string, error) { return k.ask(prompt, true) },
		"Progress": func(label string, total int) *Progress { return k.newProgress(label, int64(total)) },
	} {
		display.Binds[name] = reflect.ValueOf(f)
	}
	display.Types["Bar"] = reflect.TypeOf((*Progress)(nil)).Elem()
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

// showAs is display.Show, which shows data under an id, and display.Update,
// which replaces what is shown under it.
func (k *kernel) showAs(kind, id string, data Data) error {
	data, err := tidy(data)
	if err != nil {
		return err
	}
	r := k.receipt()
	if r == nil {
		return errors.New("cannot display: no notebook is connected")
	}
	k.flush()
	return r.Publish(kind, map[string]interface{}{
		"data": data.Data, "metadata": ensure(data.Metadata), "transient": map[string]string{"display_id": id},
	})
}

// clear is display.Clear: it removes what the cell has shown, at once or, if wait
// is set, when the next output comes.
func (k *kernel) clear(wait bool) error {
	r := k.receipt()
	if r == nil {
		return errors.New("cannot clear: no notebook is connected")
	}
	k.flush()
	return r.Publish("clear_output", map[string]bool{"wait": wait})
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
	if res.List && len(res.Values) > 1 && k.anyRenders(res) {
		return k.renderEach(res)
	}
	vals, types := append([]interface{}(nil), res.Values...), append([]xreflect.Type(nil), res.Types...)
	for i, v := range vals {
		if t := types[i]; v != nil && (t == nil || t.Kind() == reflect.Interface) {
			// What counts is the value in an interface, not what carries it.
			inner, found := xreflect.Uncover(reflect.ValueOf(v))
			vals[i] = nil
			if inner.IsValid() && !(t != nil && xreflect.IsEmulatedInterface(t) && inner.Type() == t.ReflectType()) {
				vals[i] = inner.Interface()
			}
			if found != nil {
				types[i] = found
			}
		}
	}
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
	if list := pictures(v); len(list) > 0 {
		return k.renderEach(cell.Result{Values: list, Types: make([]xreflect.Type, len(list))})
	}
	drawn, isPlot := v.(plotWriter)
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
		png, err := drawPlot(drawn)
		if err != nil {
			return Data{}, cell.Caught(fmt.Errorf("the plot cannot be drawn: %w", err))
		}
		data.Data = MIMEMap{MIMETypePNG: png, MIMETypeText: plotText(v)}
	case renders:
		data = k.autoRender(v, t)
	default:
		data.Data = MIMEMap{MIMETypeText: k.text(vals, types)}
		if t, ok := k.records(v, t); ok {
			data.Data = MIMEMap{MIMETypeText: t.text(), MIMETypeHTML: t.html()}
		}
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

// plotText says what a plot of gonum shows, as far as it has been told.
func plotText(v interface{}) string {
	p, ok := v.(*plot.Plot)
	if !ok || p.Title.Text+p.X.Label.Text+p.Y.Label.Text == "" {
		return fmt.Sprintf("%T", v)
	}
	text := "Plot"
	for _, part := range [][2]string{{": ", p.Title.Text}, {". Across: ", p.X.Label.Text}, {". Upwards: ", p.Y.Label.Text}} {
		if part[1] != "" {
			text += part[0] + part[1]
		}
	}
	return text + "."
}

// renders reports whether a value shows itself in another form than text.
func (k *kernel) renders(v interface{}, t xreflect.Type) bool {
	if v == nil {
		return false
	}
	if t == nil || t.Kind() == reflect.Interface {
		inner, found := xreflect.Uncover(reflect.ValueOf(v))
		if !inner.IsValid() {
			return false
		}
		v = inner.Interface()
		if t = found; t == nil {
			if strings.Contains(inner.Type().String(), xreflect.StrGensymInterface) {
				return false
			}
			t = k.gn.ir.Comp.Universe.TypeOf(v)
		}
	}
	_, isPlot := v.(plotWriter)
	_, isTable := k.records(v, t)
	return isPlot || isTable || k.gn.canAutoRender(v, t)
}

func (k *kernel) anyRenders(res cell.Result) bool {
	for i, v := range res.Values {
		if k.renders(v, res.Types[i]) {
			return true
		}
	}
	return false
}

// renderEach shows the values of a list one below the other.
func (k *kernel) renderEach(res cell.Result) (data Data, failed *cell.Error) {
	for i := range res.Values {
		data, failed = k.render(cell.Result{Values: res.Values[i : i+1], Types: res.Types[i : i+1]})
		if failed != nil {
			return Data{}, failed
		}
		if i < len(res.Values)-1 {
			if err := k.show(data); err != nil {
				return Data{}, cell.Caught(err)
			}
		}
	}
	return data, nil
}

// picture shows what an expression in the middle of a cell gave, if it is a
// picture: a cell with three plots shows three.
func (k *kernel) picture(res cell.Result) *cell.Error {
	if !isPicture(res.Values[0]) {
		return nil
	}
	var data Data
	var failed *cell.Error
	k.session.Drawing(func() { data, failed = k.render(res) })
	if failed != nil {
		return failed
	}
	drawn := false
	for mime := range data.Data {
		drawn = drawn || strings.HasPrefix(mime, "image/")
	}
	if !drawn {
		return nil
	}
	if err := k.show(data); err != nil {
		return cell.Caught(err)
	}
	return nil
}

func isPicture(v interface{}) bool {
	switch v.(type) {
	case plotWriter, PNGer, SVGer, JPEGer, image.Image, Renderer:
		return true
	}
	return false
}

// maxPictures is how many pictures of a slice are shown; a longer one is text.
const maxPictures = 20

// pictures are the elements of a slice of nothing but pictures, nil for other values.
func pictures(v interface{}) (list []interface{}) {
	s := reflect.ValueOf(v)
	if v == nil || isPicture(v) || s.Kind() != reflect.Slice && s.Kind() != reflect.Array || s.Len() > maxPictures {
		return nil
	}
	for i := 0; i < s.Len(); i++ {
		e := s.Index(i)
		if e.Kind() == reflect.Ptr && e.IsNil() || !e.CanInterface() || !isPicture(e.Interface()) {
			return nil
		}
		list = append(list, e.Interface())
	}
	return list
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

// convert returns nil where the interpreter cannot: it has no values of an interface
// whose methods a type declared in a cell has by its pointer.
func (k *kernel) convert(v interface{}, t, want xreflect.Type) (x interface{}) {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Ptr {
		if r.IsNil() {
			return nil
		}
		// The interpreter does not find the methods of a value behind a pointer.
		if e := t.Elem(); e.Implements(want) {
			v, t = r.Elem().Interface(), e
		}
	}
	conv := k.converter(t, want)
	if conv == nil {
		return nil
	}
	return basereflect.ValueInterface(conv(xreflect.ValueOf(v)))
}

func (k *kernel) converter(t, want xreflect.Type) (conv func(xreflect.Value) xreflect.Value) {
	defer func() { _ = recover() }()
	if conv = k.gn.ir.Comp.Converter(t, want); conv == nil {
		conv = func(v xreflect.Value) xreflect.Value { return v }
	}
	return conv
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
		if t := reflect.TypeOf(v); t.Kind() == reflect.Func {
			args[i] = t.String() // an address says nothing
			continue
		}
		if t, ok := v.(string); ok && t == "" {
			args[i] = `""` // else nothing would be seen
			continue
		}
		if list := reflect.ValueOf(v); isRecords(list.Type()) {
			args[i] = recordsText(list)
			continue
		}
		if short, ok := shortened(v); ok {
			args[i] = short
			continue
		}
		if types[i].Implements(k.stringer) {
			if x, ok := k.convert(v, types[i], k.stringer).(fmt.Stringer); ok {
				args[i] = x.String()
				continue
			}
		}
		args[i] = xreflect.Show(v, types[i])
	}
	// Not Sprint, which puts no blank between strings.
	s := strings.TrimSuffix(fmt.Sprintln(args...), "\n")
	for _, a := range args {
		shown, ok := a.(*xreflect.Shown)
		switch {
		case ok && k.session.Ending():
			panic(base.SigInterrupt)
		case ok && shown.Failed != nil:
			panic(shown.Failed) // fmt hides it
		}
	}
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
		if binary == "" && ok {
			binary = `""`
		} else if binary == "" {
			binary = "(no text form)"
		}
		out[MIMETypeText] = binary
	}
	if s, ok := out[MIMETypeText].(string); ok {
		out[MIMETypeText] = cell.PlainTypes(s)
	}
	data.Data = out
	return data, nil
}

func isText(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == MIMETypeSVG || mime == MIMETypeJavaScript
}
