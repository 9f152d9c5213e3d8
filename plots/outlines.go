package plots

import (
	"image"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// outlines is a canvas that draws text as filled outlines of its letters. gonum
// only names the font in SVG, which few machines have, and writes text into
// PDF as if it were Windows-1252.
type outlines struct{ vg.Canvas }

// FillString draws s from pt on, with the advances that font.Face.Width adds
// up.
func (o outlines) FillString(face font.Face, pt vg.Point, s string) {
	var (
		buf   sfnt.Buffer
		path  vg.Path
		em    = fixed.Int26_6(face.Face.UnitsPerEm()) << 6
		scale = face.Font.Size / vg.Length(em)
		prev  sfnt.GlyphIndex
	)
	for i, r := range s {
		g, err := face.Face.GlyphIndex(&buf, r)
		if err != nil {
			continue
		}
		if i > 0 {
			if k, err := face.Face.Kern(&buf, prev, g, em, 0); err == nil {
				pt.X += vg.Length(k) * scale
			}
		}
		prev = g
		at := func(p fixed.Point26_6) vg.Point {
			return vg.Point{X: pt.X + vg.Length(p.X)*scale, Y: pt.Y - vg.Length(p.Y)*scale}
		}
		segments, _ := face.Face.LoadGlyph(&buf, g, em, nil)
		for j, seg := range segments {
			switch seg.Op {
			case sfnt.SegmentOpMoveTo:
				if j > 0 {
					path.Close()
				}
				path.Move(at(seg.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(at(seg.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(at(seg.Args[0]), at(seg.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(at(seg.Args[0]), at(seg.Args[1]), at(seg.Args[2]))
			}
		}
		if len(segments) > 0 {
			path.Close()
		}
		if a, err := face.Face.GlyphAdvance(&buf, g, em, 0); err == nil {
			pt.X += vg.Length(a) * scale
		}
	}
	if len(path) > 0 {
		o.Fill(path)
	}
}

// pdfCanvas turns pictures over before gonum draws them, which it does upside
// down in PDF (v0.17); a test watches that.
type pdfCanvas struct{ outlines }

// DrawImage draws img upright.
func (p pdfCanvas) DrawImage(r vg.Rectangle, img image.Image) {
	b := img.Bounds()
	over := image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			over.Set(x, b.Dy()-1-y, img.At(b.Min.X+x, b.Min.Y+y))
		}
	}
	p.outlines.DrawImage(r, over)
}
