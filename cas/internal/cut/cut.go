package cut

import "sync"

// The bounds of a piece. A change inside an object makes about one piece of Average new, and each piece costs its store some 100
// bytes of records: 256 KiB keeps the records of 1 GiB below half a MiB. Min is a quarter, so that the bytes which are leapt over
// are worth the leap; Max is four times Average, which three in a million pieces of random data reach, and is what a reader must
// hold in memory.
const (
	Min     = 64 << 10
	Average = 256 << 10
	Max     = 1 << 20
)

// Next returns the length of the first piece of data: at most Max, and at least Min unless data is shorter, which is then one
// piece. It is 0 for no data only. data must hold Max bytes or reach the end of the object; otherwise the piece may end where
// data does, and the same object would be cut in two ways.
func Next(data []byte) int { return standard.next(data) }

var standard = bounds(Min, Average, Max)

// window is how many bytes a place depends on: a byte leaves a 64-bit gear hash after 64 shifts.
const window = 64

// params says how to cut. The limits are shares of 2^64.
type params struct {
	min, normal, max int
	rare, frequent   uint64
}

// bounds returns the parameters for an average that is a power of two. Before the normal size one position in 4 averages is a
// place, afterwards one in a quarter of the average: level 2 of the paper, its recommendation. A normal size of 13/16 of the
// average makes the mean piece of random data the average, because the mean piece ends a little after its normal size.
func bounds(least, average, most int) params {
	const all = 1 << 63
	return params{
		min:      least,
		normal:   average / 16 * 13,
		max:      most,
		rare:     all / uint64(average) / 2,
		frequent: all / uint64(average) * 8,
	}
}

func (p params) next(data []byte) int {
	if len(data) <= p.min {
		return len(data)
	}
	data = data[:min(len(data), p.max)]
	normal := min(len(data), p.normal)
	table := gear()
	_, hash := scan(data[p.min-window:p.min], 0, 0, table)
	n, hash := scan(data[p.min:normal], hash, p.rare, table)
	if n > 0 {
		return p.min + n
	}
	if n, _ = scan(data[normal:], hash, p.frequent, table); n > 0 {
		return normal + n
	}
	return len(data)
}

// scan continues hash over data until it is below limit. It returns how many bytes that took, or 0 when it did not happen, and
// the last hash. Two bytes a step halve the chain of operations that wait for each other.
func scan(data []byte, hash, limit uint64, table *[256]uint64) (int, uint64) {
	i := 0
	for ; i+1 < len(data); i += 2 {
		a, b := table[data[i]], table[data[i+1]]
		odd := hash<<1 + a
		if odd < limit {
			return i + 1, odd
		}
		hash = hash<<2 + (a<<1 + b)
		if hash < limit {
			return i + 2, hash
		}
	}
	if i < len(data) {
		hash = hash<<1 + table[data[i]]
		if hash < limit {
			return i + 1, hash
		}
	}
	return 0, hash
}

// gear is the table of the hash: 256 numbers of the generator SplitMix64 from state 0. It is computed when first needed.
var gear = sync.OnceValue(func() *[256]uint64 {
	var table [256]uint64
	state := uint64(0)
	for i := range table {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		table[i] = z ^ z>>31
	}
	return &table
})
