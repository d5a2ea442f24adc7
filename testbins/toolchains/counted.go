// Functions whose calls are counted: what probes must count, too.
package main

import (
	"fmt"
	"os"
)

type total struct{ sum int }

//go:noinline
func (t *total) add(n int) { t.sum += n }

//go:noinline
func tripled(n int) int { return 3 * n }

//go:noinline
func recurse(n int) int {
	if n < 2 {
		return n
	}
	return recurse(n-1) + recurse(n-2)
}

func main() {
	t := &total{}
	for i := 0; i < 7; i++ {
		t.add(tripled(i))
	}
	t.add(recurse(7))
	fmt.Printf("called main.(*total).add 8\ncalled main.tripled 7\ncalled main.recurse 41\n%d\n", t.sum)
	os.Exit(3)
}
