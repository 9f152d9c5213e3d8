//go:build go1.21

package main

import (
	"fmt"
	"html"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gpunotes/jupyter/cell"
)

// Progress is a bar below a cell, which display.Progress makes. It moves while
// the cell runs, and when it is done nothing is left but a line of text.
type Progress struct {
	k     *kernel
	r     *msgReceipt
	id    string
	label string
	start time.Time

	mu          sync.Mutex
	done, total int64
	sent        time.Time
	shown, over bool
	// Of gpukit's calls: the total is of parts that mean nothing to users, and
	// what is to go is reckoned from the begin of the call.
	parts bool
	began time.Time
}

// work is how far the call is that gpukit is at.
type work struct{ done, total, began atomic.Int64 }

// worthTelling is how long a call takes at least of which a part is shown: there
// may be many calls in a second.
const worthTelling = time.Second

// report is called by gpukit.
func (w *work) report(done, total int64) {
	if done == 0 || done < w.done.Load() || total != w.total.Load() {
		w.began.Store(time.Now().UnixNano())
	}
	w.total.Store(total)
	w.done.Store(done)
}

// since returns how far a call is that began after start, total 0 if that is not known.
func (w *work) since(start time.Time) (done, total int64, began time.Time) {
	began = time.Unix(0, w.began.Load())
	if done, total = w.done.Load(), w.total.Load(); done <= 0 || done > total || began.Before(start) || time.Since(began) < worthTelling {
		return 0, 0, began
	}
	return done, total, began
}

// barEvery is how often a bar moves.
const barEvery = 100 * time.Millisecond

var bars atomic.Int64

// newProgress makes a bar that is not shown yet. Of a total of 0 it is not known when it will be full.
func (k *kernel) newProgress(label string, total int64) *Progress {
	p := &Progress{k: k, r: k.receipt(), id: fmt.Sprintf("gpunotes-progress-%d", bars.Add(1)), label: label, total: total, start: time.Now()}
	k.mu.Lock()
	k.bars = append(k.bars, p)
	k.mu.Unlock()
	return p
}

// Step moves the bar by one.
func (p *Progress) Step() { p.Add(1) }

// Add moves the bar by n.
func (p *Progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	p.move()
}

// Set moves the bar to n.
func (p *Progress) Set(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = int64(n)
	p.move()
}

// Done ends the bar. The end of the cell does so, too.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish(true)
}

func (p *Progress) move() {
	if now := time.Now(); !p.over && now.Sub(p.sent) >= barEvery {
		p.sent = now
		p.publish(p.bar())
	}
}

// finish leaves one line. all says that everything was done.
func (p *Progress) finish(all bool) {
	if p.over || !p.shown && !all {
		return
	}
	p.over = true
	text := fmt.Sprintf("%s: %s in %s", p.label, count(p.done), duration(time.Since(p.start)))
	if p.total > 0 && p.done < p.total {
		text = fmt.Sprintf("%s: stopped at %s of %s after %s", p.label, count(p.done), count(p.total), duration(time.Since(p.start)))
	}
	p.publish(text, "<small>"+html.EscapeString(text)+"</small>")
}

// bar returns the bar as text and as HTML.
func (p *Progress) bar() (text, page string) {
	spent := time.Since(p.start)
	label := html.EscapeString(p.label)
	if p.total <= 0 {
		text = fmt.Sprintf("%s: %s, %s", p.label, count(p.done), duration(spent))
		if p.done == 0 {
			text = fmt.Sprintf("%s: %s", p.label, duration(spent))
		}
		return text, "<progress></progress> " + html.EscapeString(text)
	}
	part := min(float64(p.done)/float64(p.total), 1)
	rest := ""
	if part > 0 && part < 1 {
		since := spent
		if p.parts {
			since = time.Since(p.began)
		}
		rest = fmt.Sprintf(", %s to go", duration(time.Duration(float64(since)*(1-part)/part)))
	}
	of := fmt.Sprintf("%s of %s, %s%s", count(p.done), count(p.total), duration(spent), rest)
	if p.parts {
		of = duration(spent) + rest
	}
	const width = 20
	full := int(part * width)
	text = fmt.Sprintf("%s [%s%s] %.0f%%, %s", p.label, strings.Repeat("#", full), strings.Repeat("-", width-full), 100*part, of)
	return text, fmt.Sprintf(`<progress value="%.4f"></progress> %s: %.0f%%, %s`, part, label, 100*part, of)
}

// count groups the digits of a number.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (p *Progress) publish(text, page string) {
	kind := "update_display_data"
	if !p.shown {
		kind = "display_data"
		p.k.flush() // what was printed before stands above it
	}
	p.shown = true
	if p.r == nil {
		return
	}
	err := p.r.Publish(kind, map[string]interface{}{
		"data":      map[string]string{MIMETypeHTML: page, MIMETypeText: text},
		"metadata":  map[string]interface{}{"gpunotes": map[string]string{"shown": "progress"}},
		"transient": map[string]string{"display_id": p.id},
	})
	if err != nil {
		logger.Println("progress not shown:", err)
	}
}

// endBars ends the bars of the cell that has just run.
func (k *kernel) endBars() {
	k.mu.Lock()
	bars := k.bars
	k.bars = nil
	k.mu.Unlock()
	for _, p := range bars {
		p.mu.Lock()
		p.finish(false)
		p.mu.Unlock()
	}
}

// watch shows a bar for a statement that takes long, without being asked: for a
// loop at the top of a cell, and for a call in which gpukit is at work.
func (k *kernel) watch(a cell.Activity) bool {
	k.watching.Lock()
	defer k.watching.Unlock()
	working := k.polled.Swap(false)
	if k.bar == nil {
		k.mu.Lock()
		own := len(k.bars) > 0 // the cell has a bar of its own
		k.mu.Unlock()
		if a.Over || own || !a.Loop && !a.Drawing && !working {
			return false
		}
		label := fmt.Sprintf("line %d", a.Line)
		switch {
		case a.Drawing:
			label += ", drawing"
		case !a.Loop:
			label += ", gpukit at work"
		}
		k.bar = k.newProgress(label, a.Total)
		k.bar.start = a.Start
	}
	p := k.bar
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total = a.Done, a.Total
	if !a.Loop {
		p.parts = true
		if p.done, p.total, p.began = k.work.since(a.Start); !working && !a.Over {
			p.done, p.total = 0, 0 // that call has ended
		}
	}
	if !a.Over {
		p.move()
		return true
	}
	k.bar = nil
	switch {
	case !a.Loop:
		p.over = true
		what := fmt.Sprintf("line %d", a.Line)
		if a.Drawing {
			what = p.label
		}
		text := fmt.Sprintf("%s: %s", what, duration(time.Since(p.start)))
		if p.total > 0 && k.session.Interrupted() {
			text = fmt.Sprintf("line %d: stopped at %.0f%% after %s", a.Line, 100*float64(p.done)/float64(p.total), duration(time.Since(p.start)))
		}
		p.publish(text, "<small>"+html.EscapeString(text)+"</small>")
	default:
		if k.session.Interrupted() && p.total == 0 || p.total > 0 && p.done < p.total-1 {
			p.total = max(p.total, p.done+1) // it says that it stopped
		} else if p.total > 0 {
			p.done = p.total
		}
		p.finish(true)
	}
	return true
}
