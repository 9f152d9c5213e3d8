package plots

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/palette/moreland"
)

// Control points, evenly spaced, of two perceptually uniform palettes. gonum
// has neither. Source: every fifth of the 256 entries that matplotlib 3.11
// publishes; interpolation is off by at most 1 (viridis) and 4 (cividis) of
// 255.
const (
	viridisPoints = "" +
		"440154 46085c 471063 481769 481d6f 482475 472a7a 46307e 453781 433d84 414287 3f4889 3d4e8a " +
		"3a538b 38598c 355e8d 33638d 31688e 2e6d8e 2c718e 2a768e 297b8e 27808e 25848e 23898e 218e8d " +
		"20928c 1f978b 1e9c89 1fa188 21a585 24aa83 28ae80 2eb37c 35b779 3dbc74 46c06f 50c46a 5ac864 " +
		"65cb5e 70cf57 7cd250 89d548 95d840 a2da37 b0dd2f bddf26 cae11f d8e219 e5e419 f1e51d fde725"
	cividisPoints = "" +
		"00224e 002656 002a5f 002d68 003070 083370 163770 203a6f 273e6e 2e416d 34456c 3a486c 3f4c6c " +
		"444f6c 49536c 4e566c 535a6d 575d6d 5c616e 60646f 656870 696b71 6d6f72 727274 767676 7a7a78 " +
		"7e7d78 838179 888578 8d8878 928c78 969077 9b9476 a09875 a59c74 aaa073 afa471 b5a86f baac6d " +
		"bfb06b c4b468 c9b965 cfbd62 d4c15f dac65b dfca57 e5cf52 ead34c f0d846 f6dd3f fce236 fee838"
)

// A colors is a palette of 256 entries, lowest value first, and a grey for NaN
// that is not among them.
type colors struct {
	entry [256]color.NRGBA
	nan   color.NRGBA
}

const defaultPalette = "viridis"

// palettes makes a palette by name.
var palettes = map[string]func() *colors{
	"viridis":  func() *colors { return interpolated(viridisPoints) },
	"cividis":  func() *colors { return interpolated(cividisPoints) },
	"coolwarm": coolwarm,
}

func paletteNames() []string {
	names := make([]string, 0, len(palettes))
	for n := range palettes {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// interpolated joins evenly spaced control points by straight lines in sRGB.
func interpolated(points string) *colors {
	var p []color.NRGBA
	for _, s := range strings.Fields(points) {
		v, _ := strconv.ParseUint(s, 16, 32)
		p = append(p, color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255})
	}
	c := colors{nan: color.NRGBA{0xc8, 0xc8, 0xc8, 0xff}}
	for i := range c.entry {
		t := float64(i) / 255 * float64(len(p)-1)
		k := min(int(t), len(p)-2)
		mix := func(a, b uint8) uint8 {
			return uint8(math.Round(float64(a) + float64((t-float64(k))*(float64(b)-float64(a)))))
		}
		a, b := p[k], p[k+1]
		c.entry[i] = color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
	}
	return &c
}

// coolwarm is Moreland's diverging map, for values around a middle.
func coolwarm() *colors {
	c := colors{nan: color.NRGBA{0x70, 0x70, 0x70, 0xff}} // its middle is a light grey
	for i, x := range moreland.SmoothBlueRed().Palette(len(c.entry)).Colors() {
		c.entry[i] = color.NRGBAModel.Convert(x).(color.NRGBA)
	}
	return &c
}

// at returns the colour of v on the scale from lo to hi; values beyond the
// scale, infinities included, get the end's colour, NaN a grey.
func (c *colors) at(v, lo, hi float64) color.NRGBA {
	if math.IsNaN(v) {
		return c.nan
	}
	if math.IsInf(hi-lo, 0) {
		v, lo, hi = v/2, lo/2, hi/2
	}
	t := (v - lo) / (hi - lo)
	switch {
	case t >= 1:
		return c.entry[255]
	case t > 0:
		return c.entry[int(t*256)]
	}
	return c.entry[0]
}
