package plots

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"html"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Figure is a picture with title, axes and a key of colours on an opaque
// white ground, so that it reads on light and dark pages. Its methods set one
// thing each and return the figure, so that they chain. The first bad argument,
// of the constructor or of a method, is kept: the figure then shows it instead
// of a picture.
type Figure struct {
	err        error
	name       string // of the constructor, for errors
	plot       *plot.Plot
	content    content
	w, h       vg.Length
	colorLabel string
	colors     *colors
	levels     []float64 // as the user gave them; nil for ours
}

// content is what distinguishes one kind of figure from another.
type content interface {
	// prepare is called before each drawing at the figure's size.
	prepare(f *Figure)
	// line is true for line art, which is best kept as such.
	line() bool
	// key is what is drawn to the right of the axes, notes below them.
	key(f *Figure) key
	notes() []string
	// texts are the names that are written into the plot and its key.
	texts() []string
	// alt says in sentences what is shown.
	alt(f *Figure) string
}

// A key explains the colours beside the plot.
type key interface {
	// width for a plot area of height h; 0 for none.
	width(h vg.Length) vg.Length
	// draw draws from left on, beside the plot area.
	draw(c draw.Canvas, left vg.Length, area vg.Rectangle)
}

const (
	margin      = vg.Length(8) // around the figure, in points
	textSize    = vg.Length(10)
	tickSize    = vg.Length(9)
	noteSize    = vg.Length(8)
	cssDPI      = 96        // pixels per inch of a notebook page
	maxPNG      = 640 << 10 // Render sends it twice; servers drop what exceeds some MB
	defaultWide = 6.4
	defaultHigh = 4.8
	minInch     = 1.5
	maxInch     = 30
)

func sans(size vg.Length) text.Style {
	return text.Style{
		Color:   color.Black,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		Handler: plot.DefaultTextHandler,
	}
}

func newFigure(name string) *Figure {
	f := &Figure{
		name:   name,
		plot:   plot.New(),
		w:      defaultWide * vg.Inch,
		h:      defaultHigh * vg.Inch,
		colors: palettes[defaultPalette](),
	}
	p := f.plot
	p.Title.TextStyle.Font = sans(12).Font
	p.Title.Padding = 6
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = sans(textSize).Font
		a.Label.Padding = 3
		a.Tick.Label.Font = sans(tickSize).Font
		a.Tick.Length = 4
		a.Tick.Marker = &niceTicks{6}
		a.Padding = 0
		a.Width = 0 // the content draws a frame
	}
	return f
}

// ok returns f, or for one that no constructor made a figure that says so.
func (f *Figure) ok(method string) *Figure {
	what := ""
	switch {
	case f == nil:
		what = "a nil *Figure"
	case f.plot == nil && f.err == nil:
		what = "an empty Figure"
	default:
		return f
	}
	return &Figure{name: method, err: fmt.Errorf("plots: %s of %s; make one with plots.Line, plots.Heatmap or the like", method, what)}
}

func (f *Figure) fail(format string, args ...any) *Figure {
	if f.err == nil {
		f.err = fmt.Errorf("plots."+f.name+": "+format, args...)
	}
	return f
}

// Err returns the first error of the figure's constructor and methods, or nil.
// It says which argument is wrong, its shape, and what is expected. That title and
// labels leave no room at the present size is an error too.
func (f *Figure) Err() (err error) {
	f = f.ok("Err")
	if f.err != nil {
		return f.err
	}
	defer f.caught(&err)
	_, err = f.layout(draw.Canvas{Rectangle: f.bounds()})
	return err
}

// caught turns a panic of gonum, say of a plotter that the user added, into an error:
// nothing else stands between it and the notebook kernel.
func (f *Figure) caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("plots.%s: the figure cannot be drawn: %v", f.name, r)
	}
}

func (f *Figure) bounds() vg.Rectangle { return vg.Rectangle{Max: vg.Point{X: f.w, Y: f.h}} }

// Title sets the line above the plot; long ones are wrapped.
func (f *Figure) Title(s string) *Figure {
	f = f.ok("Title")
	if f.err == nil {
		f.plot.Title.Text = s
	}
	return f
}

// Labels sets the labels of the axes; name the unit too, as in
// "longitude / deg".
func (f *Figure) Labels(x, y string) *Figure {
	f = f.ok("Labels")
	if f.err == nil {
		f.plot.X.Label.Text, f.plot.Y.Label.Text = x, y
	}
	return f
}

// ColorLabel sets the label of the key of colours: what z is, and its unit.
func (f *Figure) ColorLabel(s string) *Figure {
	f = f.ok("ColorLabel")
	f.colorLabel = s
	return f
}

// Size sets the size of the whole figure in inches, each between 1.5 and 30;
// a notebook shows 96 pixels per inch. The default is 6.4 by 4.8.
func (f *Figure) Size(width, height float64) *Figure {
	f = f.ok("Size")
	if f.err != nil {
		return f
	}
	if !(width >= minInch && width <= maxInch && height >= minInch && height <= maxInch) {
		return f.fail("Size(%g, %g): width and height are in inches, each between %g and %g", width, height, minInch, float64(maxInch))
	}
	f.w, f.h = vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch
	return f
}

// Palette sets the colours by name: "viridis" (the default) and "cividis"
// (easiest to read with colour-blind eyes) rise evenly from dark to light;
// "coolwarm" diverges from a light middle, for values around one.
func (f *Figure) Palette(name string) *Figure {
	f = f.ok("Palette")
	if f.err != nil {
		return f
	}
	make := palettes[name]
	if make == nil {
		return f.fail("Palette(%q): the palettes are %s", name, strings.Join(paletteNames(), ", "))
	}
	f.colors = make()
	return f
}

// Levels sets the values whose lines Contour draws, in any order; without it
// they are about eight round numbers. Equal ones count once; levels without a
// line are noted below the figure.
func (f *Figure) Levels(v ...float64) *Figure {
	f = f.ok("Levels")
	if f.err != nil {
		return f
	}
	if _, ok := f.content.(*contour); !ok {
		return f.fail("Levels: only plots.Contour has levels")
	}
	if len(v) == 0 {
		return f.fail("Levels: no level is given; leave the call out for round numbers")
	}
	for i, l := range v {
		if math.IsNaN(l) || math.IsInf(l, 0) {
			return f.fail("Levels: level %d is %g, want a finite number", i+1, l)
		}
	}
	f.levels = slices.Clone(v)
	slices.Sort(f.levels)
	f.levels = slices.Compact(f.levels)
	return f
}

// Plot returns the gonum plot within the figure: title, axes, scales, and Add
// for further plotters on top. Changes show in the figure. The key of colours
// and the notes are not part of it. Of a figure with an error it is an empty
// plot.
func (f *Figure) Plot() *plot.Plot {
	if f == nil || f.plot == nil {
		return plot.New()
	}
	return f.plot
}

// A layout is a figure's division: notes below, the plot with its title and axes, the
// key to the right.
type layout struct {
	plot  plot.Plot // the user's, with what depends on the size
	main  draw.Canvas
	area  vg.Rectangle // within the axes
	all   draw.Canvas  // without margin and notes
	key   key
	notes string
	foot  vg.Point // where the notes stand
}

func noteStyle() text.Style {
	sty := sans(noteSize)
	sty.Color = color.Gray{0x40}
	return sty
}

// layout divides c; it draws nothing.
func (f *Figure) layout(c draw.Canvas) (*layout, error) {
	f.content.prepare(f)
	c = draw.Crop(c, margin, -margin, margin, -margin)
	l := &layout{plot: *f.plot, foot: c.Min}
	if notes := append(f.content.notes(), f.lacking()...); len(notes) > 0 {
		sty := noteStyle()
		l.notes = wrap(sty, strings.Join(notes, "; "), c.Size().X)
		l.foot.Y += sty.FontExtents().Descent
		c.Min.Y += sty.Height(l.notes) + 4
	}
	l.all, l.main, l.key = c, c, f.content.key(f)
	if w := l.key.width(c.Size().Y); w > 0 {
		l.main.Max.X -= w + 12
	}
	p := &l.plot
	p.BackgroundColor = color.White
	p.Title.Text = wrap(p.Title.TextStyle, printable(p.Title.TextStyle, p.Title.Text), l.main.Size().X)
	labels := [2]string{printable(p.X.Label.TextStyle, p.X.Label.Text), printable(p.Y.Label.TextStyle, p.Y.Label.Text)}
	for i, s := range labels { // for a first guess of the area, one line each
		if s != "" {
			[]*plot.Axis{&p.X, &p.Y}[i].Label.Text = "x"
		}
	}
	area := p.DataCanvas(l.main)
	for _, wrapX := range []bool{true, false, true} { // the lines of one label take from the length of the other
		if wrapX {
			p.X.Label.Text = wrap(p.X.Label.TextStyle, labels[0], area.Size().X)
		} else {
			p.Y.Label.Text = wrap(p.Y.Label.TextStyle, labels[1], area.Size().Y)
		}
		fitTicks(&p.X, area.Size().X, 9, func(s string) vg.Length { return p.X.Tick.Label.Width(s) + 16 })
		fitTicks(&p.Y, area.Size().Y, 8, func(s string) vg.Length { return p.Y.Tick.Label.Height(s) * 2 })
		area = p.DataCanvas(l.main)
		if area.Size().X < 20 || area.Size().Y < 20 {
			return nil, fmt.Errorf("plots.%s: a figure of %.3g x %.3g inches leaves no room for the plot beside its title, labels and key; shorten them, or enlarge it with Size", f.name, f.w/vg.Inch, f.h/vg.Inch)
		}
	}
	l.area = area.Rectangle
	return l, nil
}

// draw draws the figure on the whole of c.
func (f *Figure) draw(c draw.Canvas) error {
	l, err := f.layout(c)
	if err != nil {
		return err
	}
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	if l.notes != "" {
		c.FillText(noteStyle(), l.foot, l.notes)
	}
	l.plot.Draw(l.main)
	if l.key.width(l.all.Size().Y) > 0 {
		l.key.draw(l.all, l.main.Max.X+12, l.area)
	}
	return nil
}

// lacking notes how many characters of the figure's text the font has not.
func (f *Figure) lacking() []string {
	sty := sans(textSize)
	n := 0
	for _, s := range append(f.content.texts(), f.plot.Title.Text, f.plot.X.Label.Text, f.plot.Y.Label.Text, f.colorLabel) {
		n += strings.Count(printable(sty, s), "?") - strings.Count(s, "?")
	}
	switch n {
	case 0:
		return nil
	case 1:
		return []string{"a ? stands for a character that the font lacks"}
	}
	return []string{fmt.Sprintf("? stands for %d characters that the font lacks", n)}
}

// printable returns s without the characters that the font lacks, which would
// vanish: raised numbers such as in s⁻² become s^-2, tabs and the like a space, others
// a question mark.
func printable(sty text.Style, s string) string {
	const raised, plain = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-"
	face := sty.Handler.Cache().Lookup(sty.Font, sty.Font.Size)
	has := func(r rune) bool {
		g, err := face.Face.GlyphIndex(nil, r)
		return err == nil && g != 0
	}
	isRaised := func(r rune) bool { return strings.ContainsRune(raised, r) }
	var b strings.Builder
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		j := i
		for j < len(runes) && isRaised(runes[j]) {
			j++
		}
		switch {
		case j > i && slices.ContainsFunc(runes[i:j], func(r rune) bool { return !has(r) }):
			b.WriteByte('^')
			for _, r := range runes[i:j] {
				b.WriteByte(plain[slices.Index([]rune(raised), r)])
			}
			i = j - 1
		case runes[i] == '\n':
			b.WriteByte('\n')
		case has(runes[i]) && !unicode.IsControl(runes[i]):
			b.WriteRune(runes[i])
		case unicode.IsControl(runes[i]) || unicode.IsSpace(runes[i]):
			b.WriteByte(' ')
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// fitTicks lowers the number of ticks of a until their labels, of which size
// tells the length along the axis, fit into length.
func fitTicks(a *plot.Axis, length vg.Length, most int, size func(string) vg.Length) {
	fits := func() bool {
		var sum vg.Length
		for _, t := range a.Tick.Marker.Ticks(a.Min, a.Max) {
			if t.Label != "" {
				sum += size(t.Label)
			}
		}
		return sum <= length
	}
	switch t := a.Tick.Marker.(type) {
	case *niceTicks:
		for n := most; ; n-- {
			a.Tick.Marker = &niceTicks{n}
			if n == 1 || fits() {
				return
			}
		}
	case decades:
		for ; !fits() && t.every < 600; t.every++ {
			a.Tick.Marker = decades{t.every + 1}
		}
	}
}

// wrap breaks s into lines not longer than width: at spaces, and within words that
// are longer themselves.
func wrap(sty text.Style, s string, width vg.Length) string {
	if s == "" || sty.Width(s) <= width {
		return s
	}
	var lines []string
	for _, line := range strings.Split(s, "\n") {
		at := ""
		for _, w := range strings.Fields(line) {
			if at != "" && sty.Width(at+" "+w) <= width {
				at += " " + w
				continue
			}
			if at != "" {
				lines = append(lines, at)
			}
			for at = w; sty.Width(at) > width; {
				n := fitting(sty, at, width)
				if n == len(at) {
					break
				}
				lines, at = append(lines, at[:n]), at[n:]
			}
		}
		lines = append(lines, at)
	}
	return strings.Join(lines, "\n")
}

// fitting is the number of bytes of a word that fit into width, at least one letter.
func fitting(sty text.Style, word string, width vg.Length) int {
	n := 0
	for i, r := range word {
		end := i + len(string(r))
		if n > 0 && sty.Width(word[:end]) > width {
			break
		}
		n = end
	}
	return n
}

// encode draws the figure in one of the formats.
func (f *Figure) encode(format string) (data []byte, err error) {
	if f.err != nil {
		return nil, f.err
	}
	defer f.caught(&err)
	var b bytes.Buffer
	switch format {
	case "png", "jpg":
		return f.image(format, 2*cssDPI)
	case "svg":
		c := vgsvg.New(f.w, f.h)
		if err := f.draw(draw.Canvas{Canvas: outlines{c}, Rectangle: f.bounds()}); err != nil {
			return nil, err
		}
		if _, err := c.WriteTo(&b); err != nil {
			return nil, err
		}
		title := "<title>" + html.EscapeString(f.Alt()) + "</title>\n"
		head, tail, _ := bytes.Cut(b.Bytes(), []byte(">\n<g "))
		head = bytes.Replace(head, []byte("<svg "), []byte(`<svg role="img" stroke-linejoin="round" `), 1)
		// vgsvg calls its pictures JPEG and lets viewers keep their aspect
		// ratio.
		tail = bytes.ReplaceAll(tail, []byte("<image x="), []byte(`<image preserveAspectRatio="none" x=`))
		tail = bytes.ReplaceAll(tail, []byte(`xlink:href="data:image/jpg;`), []byte(`xlink:href="data:image/png;`))
		return slices.Concat(head, []byte(">\n"+title+"<g "), tail), nil
	case "pdf":
		c := vgpdf.New(f.w, f.h)
		if err := f.draw(draw.Canvas{Canvas: pdfCanvas{outlines{c}}, Rectangle: f.bounds()}); err != nil {
			return nil, err
		}
		if _, err := c.WriteTo(&b); err != nil {
			return nil, err
		}
		return pdfDate.ReplaceAll(b.Bytes(), []byte("${1}19700101000000")), nil
	}
	return nil, fmt.Errorf("plots.%s: internal error: format %q", f.name, format)
}

// The same figure is the same file: the time that the PDF writer puts in is
// replaced by another of the same length.
var pdfDate = regexp.MustCompile(`(/(?:Creation|Mod)Date \(D:)\d{14}`)

func (f *Figure) image(format string, dpi int) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(f.w, f.h), vgimg.UseDPI(dpi))
	if err := f.draw(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	var err error
	if format == "jpg" {
		err = jpeg.Encode(&b, c.Image(), &jpeg.Options{Quality: 95})
	} else {
		err = png.Encode(&b, c.Image())
		if err == nil {
			return described(b.Bytes(), f.Alt()), nil
		}
	}
	return b.Bytes(), err
}

// described puts a text into a PNG, under the keyword that the PNG specification (3rd
// edition, 11.3.3) has for it, after the header, which takes the first 33 bytes.
func described(data []byte, text string) []byte {
	chunk := append([]byte("iTXtDescription\x00\x00\x00\x00\x00"), text...)
	b := binary.BigEndian.AppendUint32(slices.Clone(data[:33]), uint32(len(chunk)-4))
	b = append(b, chunk...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(chunk))
	return append(b, data[33:]...)
}

// formats of Save by extension.
var formats = map[string]string{".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".svg": "svg", ".pdf": "pdf"}

// Save writes the figure to a file, in the format of the path's extension: .png
// and .jpg (or .jpeg) with 192 pixels per inch, .svg, .pdf. Text in SVG and PDF
// is drawn as outlines, so that it looks the same without our fonts. The same
// figure gives the same bytes.
func (f *Figure) Save(path string) error {
	f = f.ok("Save")
	if f.err != nil {
		return f.err
	}
	format := formats[strings.ToLower(filepath.Ext(path))]
	if format == "" {
		return fmt.Errorf("plots.%s: Save(%q): the extension says the format; the known ones are .png, .jpg, .jpeg, .svg, .pdf", f.name, path)
	}
	data, err := f.encode(format)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		return fmt.Errorf("plots.%s: Save: %w", f.name, err)
	}
	return nil
}

// Alt says in words what the figure shows: sizes, ranges, the least and the
// greatest value and where they are. Of a figure with an error it is the error.
func (f *Figure) Alt() string {
	f = f.ok("Alt")
	if f.err != nil {
		return f.err.Error()
	}
	s := f.content.alt(f)
	if t := f.plot.Title.Text; t != "" {
		s = strings.TrimRight(t, ".") + ". " + s
	}
	return strings.Join(strings.Fields(s), " ")
}

// String returns Alt.
func (f *Figure) String() string { return f.Alt() }

// Render returns what a notebook shows: a heat map, and a scatter plot of very many
// points, as PNG, with two pixels for each of the page's unless that takes more than
// 640 KiB; anything else as SVG; the same as an HTML image with Alt as its
// alternative text, which notebooks prefer; and the text of Alt. Of a figure with an
// error, the error.
func (f *Figure) Render() Data {
	f = f.ok("Render")
	var d Data
	d.Data = map[string]interface{}{}
	d.Metadata = map[string]interface{}{}
	err := f.err
	if err == nil {
		err = f.render(d)
	}
	if err != nil {
		s := err.Error()
		d.Data = map[string]interface{}{
			"text/plain": s,
			"text/html":  `<pre style="color:#c62828">` + html.EscapeString(s) + "</pre>",
		}
		return d
	}
	d.Data["text/plain"] = f.Alt()
	return d
}

func (f *Figure) render(d Data) error {
	mime := "image/png"
	var data []byte
	var err error
	if f.content.line() {
		mime = "image/svg+xml"
		if data, err = f.encode("svg"); err == nil {
			d.Data[mime] = string(data)
		}
	} else {
		if data, err = f.encode("png"); err == nil && len(data) > maxPNG {
			data, err = f.image("png", cssDPI)
		}
		d.Data[mime] = data
	}
	if err != nil {
		return err
	}
	wide, high := int(math.Round(float64(f.w/vg.Inch*cssDPI))), int(math.Round(float64(f.h/vg.Inch*cssDPI)))
	alt := f.Alt()
	if mime == "image/png" {
		d.Metadata[mime] = map[string]interface{}{"width": wide, "height": high, "alt": alt} // nbconvert reads alt
	}
	// JupyterLab leaves out alt of an image, and SVG of a notebook that it does not
	// trust; an image in HTML it shows with both.
	d.Data["text/html"] = fmt.Sprintf(`<img alt="%s" width="%d" height="%d" src="data:%s;base64,%s">`,
		html.EscapeString(alt), wide, high, mime, base64.StdEncoding.EncodeToString(data))
	return nil
}

// guard turns a panic of gpukit, say of an array whose device failed, into an
// error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New(strings.TrimSpace(fmt.Sprint(r)))
		}
	}()
	return f()
}
