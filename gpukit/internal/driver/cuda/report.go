//go:build cuda

package cuda

import (
	"time"

	"gorgonia.org/cu"

	"gpunotes/gpukit/internal/driver"
)

// report is an operation that a recorder wants to hear of.
type report struct {
	to     func(driver.Record)
	record driver.Record
	begin  cu.Event
	done   bool
	void   bool // it did not come about
}

// reporting enters an operation in the list of reports, if somebody wants them.
func (d *device) reporting(s driver.Stream, x driver.Record) *report {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recorder == nil {
		return nil
	}
	x.Stream = s
	r := &report{to: d.recorder, record: x}
	d.reports = append(d.reports, r)
	return r
}

func (d *device) drop(r *report) {
	if r == nil {
		return
	}
	d.mu.Lock()
	r.done, r.void = true, true
	if r.begin != (cu.Event{}) {
		d.pool(r.begin, true)
	}
	d.mu.Unlock()
}

// deliver gives the reports that are complete to who wants them, in the order of the calls.
func (d *device) deliver() {
	d.delivering.Lock()
	defer d.delivering.Unlock()
	for {
		d.mu.Lock()
		if len(d.reports) == 0 || !d.reports[0].done {
			d.mu.Unlock()
			return
		}
		r := d.reports[0]
		d.reports = d.reports[1:]
		d.mu.Unlock()
		if !r.void {
			r.to(r.record)
		}
	}
}

// measure asks for the times of a report whose mark is reached.
func (d *device) measure(m *mark) error {
	r := m.report
	if r == nil {
		return nil
	}
	start, err := d.base.Elapsed(r.begin)
	if err == nil {
		var took float64
		if took, err = r.begin.Elapsed(m.event); err == nil {
			r.record.Start = d.offset + milliseconds(start)
			r.record.Duration = max(milliseconds(took), 0)
		}
	}
	if err != nil {
		if e := d.c.failed("cuEventElapsedTime", err, ""); fatal(e.Code) {
			return e
		}
		return nil // the operation is reported, without times
	}
	// The driver's answer is a float32: times from long ago are coarse, so a later event becomes the base.
	if start > 16e3 {
		d.base, r.begin = r.begin, d.base
		d.offset = r.record.Start
	}
	return nil
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Record makes the device report each operation from now on. What was begun before is still reported to who wanted it.
func (d *device) Record(f func(driver.Record)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recorder = f
}
