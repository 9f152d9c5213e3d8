package cell

import (
	"math"
	"slices"
	"time"
)

// A Bench is what Session.Again measured.
type Bench struct {
	Rounds                    int           // how often the cell was run
	Min, Median, Mean, Stddev time.Duration // of one run
}

// Again runs the cell that ran last once more, and again, for about the given
// time or exactly rounds times if that is not 0, and measures each run. Runs
// shorter than the clock can tell are timed in batches.
func (s *Session) Again(rounds int, total time.Duration) (b Bench, failed *Error) {
	result := new(Bench)
	failed = s.Guard(func() *Error {
		s.measuring.Store(true)
		defer s.measuring.Store(false)
		once := func(n int) (time.Duration, *Error) {
			start := time.Now()
			for i := 0; i < n; i++ {
				for _, expr := range s.again {
					if _, _, failed := s.eval(expr); failed != nil {
						return 0, failed
					}
					if s.interrupted.Load() {
						return 0, interruptedError()
					}
				}
			}
			return time.Since(start), nil
		}
		first, failed := once(1)
		if failed != nil {
			return failed
		}
		const tellable = 20 * time.Microsecond
		batch := 1
		if rounds == 0 && first < tellable {
			batch = int(tellable/max(first, time.Nanosecond)) + 1
		}
		var each []float64
		for begin := time.Now(); rounds > 0 && len(each) < rounds || rounds == 0 && (len(each) < 3 || time.Since(begin) < total && len(each) < 100000); {
			d, failed := once(batch)
			if failed != nil {
				return failed
			}
			each = append(each, float64(d)/float64(batch))
		}
		slices.Sort(each)
		sum := 0.0
		for _, x := range each {
			sum += x
		}
		mean := sum / float64(len(each))
		squares := 0.0
		for _, x := range each {
			squares += (x - mean) * (x - mean)
		}
		*result = Bench{
			Rounds: len(each) * batch, Min: time.Duration(each[0]), Median: time.Duration(each[len(each)/2]), Mean: time.Duration(mean),
			Stddev: time.Duration(math.Sqrt(squares / float64(len(each)))),
		}
		return nil
	})
	if failed != nil {
		if len(failed.Frames) == 0 {
			failed.Frames = s.last
		}
		return b, failed
	}
	return *result, nil
}
