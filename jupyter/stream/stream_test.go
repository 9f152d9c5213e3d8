package stream

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

type sink struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *sink) emit(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.WriteString(text)
}

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestFlushPassesOnEverythingBefore(t *testing.T) {
	var out sink
	s, err := New(out.emit)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var want strings.Builder
	for i := 0; i < 300; i++ {
		line := fmt.Sprintf("%d %s\n", i, strings.Repeat("é☃𝄞", i))
		want.WriteString(line)
		fmt.Fprint(s.File(), line)
		if i%7 == 0 {
			if err := s.Flush(5 * time.Second); err != nil {
				t.Fatal(err)
			}
			if out.text() != want.String() {
				t.Fatalf("after line %d: text is missing or changed", i)
			}
		}
	}
}

func TestPiecesAreWholeCharacters(t *testing.T) {
	var mu sync.Mutex
	var pieces []string
	s, err := New(func(p string) { mu.Lock(); pieces = append(pieces, p); mu.Unlock() })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, b := range []byte("a☃\x00b\xffc") {
		s.File().Write([]byte{b})
		time.Sleep(2 * time.Millisecond)
	}
	if err := s.Flush(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(pieces, ""); got != "a☃\x00b\uFFFDc" {
		t.Errorf("%q", got)
	}
}

func TestWritersAreNotMixedUp(t *testing.T) {
	var out sink
	s, err := New(out.emit)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	for g := 0; g < 4; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 200; i++ {
				fmt.Fprintf(s.File(), "<%d:%d>", g, i)
				if i%50 == 0 {
					if err := s.Flush(5 * time.Second); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	wg.Wait()
	if err := s.Flush(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	got := out.text()
	for g := 0; g < 4; g++ {
		for i := 0; i < 200; i++ {
			if !strings.Contains(got, fmt.Sprintf("<%d:%d>", g, i)) {
				t.Fatalf("lost <%d:%d>", g, i)
			}
		}
	}
}

func TestSmallWritesAreGathered(t *testing.T) {
	var mu sync.Mutex
	var pieces []string
	s, err := New(func(p string) { mu.Lock(); pieces = append(pieces, p); mu.Unlock() })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	start := time.Now()
	var want strings.Builder
	for i := 0; i < 20000; i++ {
		fmt.Fprintln(s.File(), "line", i)
		fmt.Fprintln(&want, "line", i)
	}
	if err := s.Flush(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	most := 2 + int(time.Since(start)/Gather) + want.Len()/(Full-32<<10)
	mu.Lock()
	if strings.Join(pieces, "") != want.String() || len(pieces) > most {
		t.Errorf("%d pieces for 20000 lines, want %d at most; or text is changed", len(pieces), most)
	}
	pieces = nil
	mu.Unlock()
	// Without a flush, text comes soon, and a quiet stream sends nothing.
	for _, text := range []string{"alone", "and again"} {
		fmt.Fprint(s.File(), text)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			mu.Lock()
			n := len(pieces)
			mu.Unlock()
			if n > 0 {
				break
			}
		}
		time.Sleep(2 * Gather)
		mu.Lock()
		if len(pieces) != 1 || pieces[0] != text {
			t.Errorf("%q, want the piece %q", pieces, text)
		}
		pieces = nil
		mu.Unlock()
	}
}
