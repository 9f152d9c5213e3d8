package nvptx

import "testing"

// BenchmarkEmit is the time to make code of the kernels of the experiments.
func BenchmarkEmit(b *testing.B) {
	for _, k := range experiments() {
		b.Run(k.Name, func(b *testing.B) {
			for range b.N {
				if _, _, err := Emit(Target{SM: 61}, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
