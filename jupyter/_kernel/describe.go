//go:build go1.21

package main

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
	"time"

	"gpunotes/gpukit"
	"gpunotes/jupyter/apidoc"
)

// reference is the documentation of the packages that cells can import, made
// from their source when the kernel was built.
//
//go:embed reference.gz
var reference []byte

var docs = apidoc.Open(reference)

// describe says what the name at the cursor stands for, as text and as HTML.
func (k *kernel) describe(code string, cursor int) (data map[string]string, found bool) {
	if text := specialUse(lineAt(code, cursor)); text != "" {
		return map[string]string{MIMETypeText: text, MIMETypeHTML: "<pre>" + html.EscapeString(text) + "</pre>"}, true
	}
	d, found := k.session.Describe(code, cursor)
	if !found {
		return nil, false
	}
	entry, documented := docs().Lookup(d.Path, d.Symbol)
	if documented && d.Symbol != "" && d.Name == "" {
		d.Text = entry.Decl // with the names of parameters
	}
	text := d.Text
	if d.Source != "" {
		text = strings.TrimPrefix(text+"\n\n"+d.Source, "\n\n")
	}
	page := "<pre>" + html.EscapeString(text) + "</pre>"
	if d.Name != "" {
		if v, ok := k.session.Lookup(d.Name); ok {
			if a, ok := v.Interface().(*gpukit.Array); ok {
				about := aboutArray(a)
				text += "\n" + about
				page += "<p>" + html.EscapeString(about) + "</p>"
			}
		}
	}
	if documented && entry.Doc != "" && d.Source == "" {
		about := ""
		if d.Name != "" && d.Symbol != "" {
			about = fmt.Sprintf("%s.%s: ", d.Path, d.Symbol)
		}
		text += "\n\n" + about + strings.TrimRight(entry.Text(), "\n")
		if about != "" {
			page += "<p>" + html.EscapeString(about) + "</p>"
		}
		page += entry.HTML()
	}
	return map[string]string{MIMETypeText: text, MIMETypeHTML: page}, true
}

// lineAt returns the line of a cell in which the cursor is, which counts characters.
func lineAt(code string, cursor int) string {
	text := []rune(code)
	cursor = min(max(cursor, 0), len(text))
	head, tail := string(text[:cursor]), string(text[cursor:])
	line, _, _ := strings.Cut(tail, "\n")
	return head[strings.LastIndexByte(head, '\n')+1:] + line
}

// specialUse returns the line of help about a special line.
func specialUse(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch {
	case strings.HasPrefix(word, "$"):
		word = "$command"
	case !strings.HasPrefix(word, "%"):
		return ""
	}
	for _, use := range strings.Split(specialHelp, "\n") {
		if name, _, _ := strings.Cut(use, " "); name == word {
			return use
		}
	}
	return ""
}

// texts are what a function takes one of, for completion.
func texts(path, function string) []string {
	if path != "gpunotes/gpukit" || function != "Open" && function != "MustOpen" {
		return nil
	}
	names := []string{"auto"}
	for _, d := range gpukit.Devices() {
		names = append(names, d.Name)
	}
	return names
}

// maxLooked is the size of an array whose elements a question looks at.
const maxLooked = 10_000_000

// aboutArray says what an array is like. It looks at the elements only where that is quick.
func aboutArray(a *gpukit.Array) (text string) {
	if a == nil {
		return "nil"
	}
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r) // such as: it was freed
		}
	}()
	text = fmt.Sprintf("shape %v, dtype %v, device %s", a.Shape(), a.DType(), a.Device())
	if n := a.Size(); n > 0 && n <= maxLooked {
		type extremes struct{ min, max float64 }
		found := make(chan extremes, 1)
		go func() {
			defer func() { _ = recover() }() // an array of a closed device, say
			found <- extremes{a.Min(), a.Max()}
		}()
		select {
		case x := <-found:
			text += fmt.Sprintf(", min %g, max %g", x.min, x.max)
		case <-time.After(300 * time.Millisecond):
		}
	}
	return text
}
