package peer

import (
	"fmt"
	"testing"
)

// BenchmarkCall is the cost of a request of 1 KiB and its answer, over loopback.
// Both ends are in this process.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			n2 := start(b, Config{Name: "n2"}, func(p *Port) { p.Handle(MethodPropose, echo) })
			n1 := start(b, Config{Name: "n1"}, nil)
			request := make([]byte, 1024)
			b.SetParallelism(max(1, callers/2))
			b.ReportAllocs()
			if callers == 1 {
				for b.Loop() {
					if _, err := n1.Call(b.Context(), n2.Self(), MethodPropose, request); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := n1.Call(b.Context(), n2.Self(), MethodPropose, request); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
