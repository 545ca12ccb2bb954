package main

import "testing"

func TestProofsAreAccepted(t *testing.T) {
	// The second time with the keys of the first.
	directory := t.TempDir()
	work, _ := find("blocks")
	for range 2 {
		found, err := measure(work, 1, 2, 1, directory)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"blocks_per_core_second", "blocks_per_cpu_second", "seconds", "cpu_seconds"} {
			if value, ok := found[field].(float64); !ok || value <= 0 {
				t.Errorf("%s is %v", field, found[field])
			}
		}
	}
}

func TestWorkloadsAreProven(t *testing.T) {
	for _, name := range []string{"range", "memory"} {
		work, known := find(name)
		if !known {
			t.Fatalf("no workload %s", name)
		}
		if _, err := measure(work, 8, 2, 1, t.TempDir()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagesFillTheirBlocks(t *testing.T) {
	// A byte of padding and eight bytes of length follow the message.
	for blocks, bytes := range map[int]int{1: 55, 8: 503} {
		if length(blocks) != bytes {
			t.Errorf("%d blocks: %d bytes, expected %d", blocks, length(blocks), bytes)
		}
	}
}
