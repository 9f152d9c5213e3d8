package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
)

// drawLogos writes the two icons Jupyter shows: a grid of threads, one block
// of them at work.
func drawLogos(dir string) error {
	for _, size := range []int{32, 64} {
		img := image.NewNRGBA(image.Rect(0, 0, size, size))
		step := size / 4
		for y := 0; y < size; y++ {
			for x := 0; x < size; x++ {
				c := color.NRGBA{0, 125, 156, 255}
				if m := size / 16; x%step >= m && x%step < step-m && y%step >= m && y%step < step-m {
					c = color.NRGBA{127, 213, 234, 255}
					if x/step < 2 && y/step >= 1 && y/step < 3 {
						c = color.NRGBA{118, 185, 0, 255}
					}
				}
				img.SetNRGBA(x, y, c)
			}
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("logo-%dx%d.png", size, size)))
		if err != nil {
			return err
		}
		if err := png.Encode(f, img); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
