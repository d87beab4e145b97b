package cut

// NextWith returns Next for another average, with the same proportions.
func NextWith(average int) func([]byte) int {
	return bounds(average/4, average, 4*average).next
}

// Gear returns the table of the hash.
func Gear() [256]uint64 { return *gear() }
